//! `service.*`: services, looked after by systemd.

use super::call::Answer;
use super::command::{Command, Finished, operand};
use super::{Call, Failure, Function, Param, find_program};
use futures_util::FutureExt;
use saltern_core::target::Glob;
use saltern_core::value::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;

const NAME: Param = Param::Required("name");
const NO_BLOCK: Param = Param::Optional("no_block", "False");
const UNMASK: Param = Param::Optional("unmask", "False");
const UNMASK_RUNTIME: Param = Param::Optional("unmask_runtime", "False");
const RUNTIME: Param = Param::Optional("runtime", "False");

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "service.available",
        params: &[NAME],
        doc: "Tell whether a service is known.\n\nCLI Example:\n\n    saltern run '*' service.available sshd\n",
        run: |call| async move { Ok(is_known(&call).await?.into()) }.boxed(),
    },
    Function {
        name: "service.disable",
        params: &[NAME, NO_BLOCK, Param::Keywords("kwargs")],
        doc: "Do not start a service at boot any more.\n\nCLI Example:\n\n    saltern run '*' service.disable nginx\n",
        run: |call| async move { change(&call, "disable").await }.boxed(),
    },
    Function {
        name: "service.disabled",
        params: &[NAME],
        doc: "Tell whether a service is not started at boot.\n\n\
              CLI Example:\n\n    saltern run '*' service.disabled nginx\n",
        run: |call| async move { Ok((!is_enabled(&call).await?).into()) }.boxed(),
    },
    Function {
        name: "service.enable",
        params: &[NAME, NO_BLOCK, UNMASK, UNMASK_RUNTIME, Param::Keywords("kwargs")],
        doc: "Start a service at every boot.\n\nCLI Example:\n\n    saltern run '*' service.enable nginx\n",
        run: |call| async move { change(&call, "enable").await }.boxed(),
    },
    Function {
        name: "service.enabled",
        params: &[NAME, Param::Keywords("kwargs")],
        doc: "Tell whether a service is started at boot.\n\n\
              CLI Example:\n\n    saltern run '*' service.enabled nginx\n",
        run: |call| async move { Ok(is_enabled(&call).await?.into()) }.boxed(),
    },
    Function {
        name: "service.force_reload",
        params: &[NAME, Param::Optional("no_block", "True"), UNMASK, UNMASK_RUNTIME],
        doc: "Reload a service, or restart it if it cannot reload.\n\n\
              CLI Example:\n\n    saltern run '*' service.force_reload nginx\n",
        run: |call| async move { act(&call, "reload-or-restart").await }.boxed(),
    },
    Function {
        name: "service.get_all",
        params: &[],
        doc: "List all services and other units.\n\nCLI Example:\n\n    saltern run '*' service.get_all\n",
        run: |call| call.blocking(|_| Ok(Value::list(all_units()).into())),
    },
    Function {
        name: "service.get_disabled",
        params: &[],
        doc: "List the services that are not started at boot.\n\n\
              CLI Example:\n\n    saltern run '*' service.get_disabled\n",
        run: |call| async move { unit_files(&call, "disabled").await }.boxed(),
    },
    Function {
        name: "service.get_enabled",
        params: &[],
        doc: "List the services that are started at boot.\n\nCLI Example:\n\n    saltern run '*' service.get_enabled\n",
        run: |call| async move { unit_files(&call, "enabled").await }.boxed(),
    },
    Function {
        name: "service.get_running",
        params: &[],
        doc: "List the services that run now.\n\nCLI Example:\n\n    saltern run '*' service.get_running\n",
        run: |call| async move { running(&call).await }.boxed(),
    },
    Function {
        name: "service.get_static",
        params: &[],
        doc: "List the services that others start and nobody enables.\n\n\
              CLI Example:\n\n    saltern run '*' service.get_static\n",
        run: |call| async move { unit_files(&call, "static").await }.boxed(),
    },
    Function {
        name: "service.mask",
        params: &[NAME, RUNTIME],
        doc: "Keep a service from being started by anybody; until the next boot only with runtime=True.\n\n\
              CLI Example:\n\n    saltern run '*' service.mask nginx\n",
        run: |call| async move { mask(&call, true).await }.boxed(),
    },
    Function {
        name: "service.masked",
        params: &[NAME, RUNTIME],
        doc: "Tell whether a service is masked.\n\nCLI Example:\n\n    saltern run '*' service.masked nginx\n",
        run: |call| async move { Ok(is_masked(&operand(&call, "name")?, call.flag("runtime", false)).into()) }.boxed(),
    },
    Function {
        name: "service.missing",
        params: &[NAME],
        doc: "Tell whether a service is not known.\n\nCLI Example:\n\n    saltern run '*' service.missing sshd\n",
        run: |call| async move { Ok((!is_known(&call).await?).into()) }.boxed(),
    },
    Function {
        name: "service.reload",
        params: &[NAME, NO_BLOCK, UNMASK, UNMASK_RUNTIME],
        doc: "Have a service read its configuration again.\n\n\
              CLI Example:\n\n    saltern run '*' service.reload nginx\n",
        run: |call| async move { act(&call, "reload").await }.boxed(),
    },
    Function {
        name: "service.restart",
        params: &[NAME, Param::Optional("no_block", "None"), UNMASK, UNMASK_RUNTIME],
        doc: "Restart a service. The minion's own is restarted without waiting for it.\n\n\
              CLI Example:\n\n    saltern run '*' service.restart nginx\n",
        run: |call| async move { act(&call, "restart").await }.boxed(),
    },
    Function {
        name: "service.show",
        params: &[NAME],
        doc: "Tell all that systemd knows of a service.\n\nCLI Example:\n\n    saltern run '*' service.show nginx\n",
        run: |call| async move { show(&call).await }.boxed(),
    },
    Function {
        name: "service.start",
        params: &[NAME, NO_BLOCK, UNMASK, UNMASK_RUNTIME],
        doc: "Start a service.\n\nCLI Example:\n\n    saltern run '*' service.start nginx\n",
        run: |call| async move { act(&call, "start").await }.boxed(),
    },
    Function {
        name: "service.status",
        params: &[NAME, Param::Optional("sig", "None")],
        doc: "Tell whether a service runs. A name with wildcards gives a map.\n\n\
              CLI Example:\n\n    saltern run '*' service.status nginx\n    saltern run '*' service.status 'php*'\n",
        run: |call| async move { status(&call).await }.boxed(),
    },
    Function {
        name: "service.stop",
        params: &[NAME, Param::Optional("no_block", "None")],
        doc: "Stop a service.\n\nCLI Example:\n\n    saltern run '*' service.stop nginx\n",
        run: |call| async move { act(&call, "stop").await }.boxed(),
    },
    Function {
        name: "service.systemctl_reload",
        params: &[],
        doc: "Have systemd read its unit files again.\n\n\
              CLI Example:\n\n    saltern run '*' service.systemctl_reload\n",
        run: |call| {
            async move {
                needs_systemd()?;
                read_units_again(&call).await?;
                Ok(true.into())
            }
            .boxed()
        },
    },
    Function {
        name: "service.unmask",
        params: &[NAME, RUNTIME],
        doc: "Let a masked service be started again.\n\nCLI Example:\n\n    saltern run '*' service.unmask nginx\n",
        run: |call| async move { mask(&call, false).await }.boxed(),
    },
];

const UNIT_KINDS: [&str; 9] = ["service", "socket", "device", "mount", "automount", "swap", "target", "path", "timer"];

/// Our own service: whoever restarts it must not wait for it.
const OWN_SERVICE: &str = "saltern-minion.service";

/// Starts, stops and the like, which only a systemd that runs can do.
async fn act(call: &Call, verb: &str) -> Answer {
    needs_systemd()?;
    change(call, verb).await
}

/// What also works on the files of a systemd that does not run.
async fn change(call: &Call, verb: &str) -> Answer {
    let unit = unit(&operand(call, "name")?);
    let wants = |name: &str| call.has_param(name) && call.flag(name, false);
    let may_wait = if call.has_param("no_block") && call.get("no_block").is_some() {
        !call.flag("no_block", false)
    } else {
        unit != OWN_SERVICE
    };
    if is_systemd_running() {
        read_changed_unit(call, &unit).await?;
    }
    for (wanted, option) in [(wants("unmask"), None), (wants("unmask_runtime"), Some("--runtime"))] {
        if wanted && is_masked(&unit, option.is_some()) {
            systemctl(call, ["unmask"].into_iter().chain(option).chain([unit.as_str()])).await?;
        }
    }
    let no_block = (!may_wait).then_some("--no-block");
    let done = systemctl(call, no_block.into_iter().chain([verb, &unit])).await?;
    if done.is_ok() { Ok(true.into()) } else { Err(Failure::Command(done.complaint())) }
}

async fn mask(call: &Call, masked: bool) -> Answer {
    let name = operand(call, "name")?;
    let runtime = call.flag("runtime", false);
    if !masked && !is_masked(&name, runtime) {
        return Ok(true.into());
    }
    let verb = if masked { "mask" } else { "unmask" };
    let unit = unit(&name);
    let done = systemctl(call, [verb].into_iter().chain(runtime.then_some("--runtime")).chain([unit.as_str()])).await?;
    if done.is_ok() {
        return Ok(true.into());
    }
    Err(Failure::Command(format!("Failed to {verb} service '{name}': {}", done.complaint())))
}

fn is_masked(name: &str, runtime: bool) -> bool {
    let dir = if runtime { "/run/systemd/system" } else { "/etc/systemd/system" };
    std::fs::read_link(Path::new(dir).join(unit(name))).is_ok_and(|to| to == Path::new("/dev/null"))
}

async fn is_known(call: &Call) -> Result<bool, Failure> {
    needs_systemd()?;
    let unit = unit(&operand(call, "name")?);
    let done = systemctl(call, ["show", "--property=LoadState", &unit]).await?;
    Ok(done.is_ok() && !done.text().contains("LoadState=not-found"))
}

async fn is_enabled(call: &Call) -> Result<bool, Failure> {
    let unit = unit(&operand(call, "name")?);
    let done = systemctl(call, ["is-enabled", &unit]).await?;
    if done.text().trim() != "alias" {
        return Ok(done.is_ok());
    }
    // What counts is the unit behind the other name.
    let shown = systemctl(call, ["show", "--property=Id", &unit]).await?.text();
    let id = shown.trim().strip_prefix("Id=").unwrap_or(&unit);
    Ok(systemctl(call, ["is-enabled", id]).await?.is_ok())
}

async fn status(call: &Call) -> Answer {
    needs_systemd()?;
    let name = operand(call, "name")?;
    let is_active =
        async |name: &str| Ok::<_, Failure>(systemctl(call, ["is-active", "--quiet", &unit(name)]).await?.is_ok());
    if !name.contains(['*', '?', '[']) {
        return Ok(is_active(&name).await?.into());
    }
    let glob = Glob::new(&name);
    let mut found = Map::new();
    for name in all_units().into_iter().filter(|name| glob.matches(name)) {
        let active = is_active(&name).await?;
        found.push(name, active);
    }
    Ok(found.into())
}

async fn show(call: &Call) -> Answer {
    needs_systemd()?;
    let unit = unit(&operand(call, "name")?);
    Ok(read_properties(&systemctl(call, ["show", &unit]).await?.text()).into())
}

async fn unit_files(call: &Call, state: &str) -> Answer {
    let done = systemctl(call, ["--full", "--no-legend", "--no-pager", "list-unit-files"]).await?;
    if !done.is_ok() {
        return Err(Failure::Command(done.complaint()));
    }
    Ok(Value::list(read_unit_files(&done.text(), state)).into())
}

async fn running(call: &Call) -> Answer {
    needs_systemd()?;
    let done = systemctl(call, ["--full", "--no-legend", "--no-pager", "--plain", "list-units"]).await?;
    Ok(Value::list(read_running(&done.text())).into())
}

/// Unit files that changed on the disk count only after systemd has read them again.
async fn read_changed_unit(call: &Call, unit: &str) -> Result<(), Failure> {
    let done = systemctl(call, ["show", "--property=NeedDaemonReload", unit]).await?;
    if done.text().trim() == "NeedDaemonReload=yes" {
        read_units_again(call).await?;
    }
    Ok(())
}

async fn read_units_again(call: &Call) -> Result<(), Failure> {
    let done = systemctl(call, ["--system", "daemon-reload"]).await?;
    if done.is_ok() {
        return Ok(());
    }
    Err(Failure::Command(format!("Problem performing systemctl daemon-reload: {}", done.complaint())))
}

async fn systemctl<'a>(call: &Call, args: impl IntoIterator<Item = &'a str>) -> Result<Finished, Failure> {
    if find_program("systemctl").is_none() {
        return Err(Failure::Command(
            "systemctl was not found: services of this minion are not looked after by systemd".into(),
        ));
    }
    Command::tool("systemctl").args(args).run(&call.context).await
}

fn is_systemd_running() -> bool {
    Path::new("/run/systemd/system").exists()
}

fn needs_systemd() -> Result<(), Failure> {
    if is_systemd_running() {
        return Ok(());
    }
    Err(Failure::Command("systemd is not running on this minion, so its services cannot be reached".into()))
}

/// `nginx` is `nginx.service`; a name with a kind is what it is.
fn unit(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((_, kind)) if UNIT_KINDS.contains(&kind) => name.to_owned(),
        _ => format!("{name}.service"),
    }
}

/// Services without their kind, other units with it; nothing for what is no unit.
fn told(unit: &str) -> Option<&str> {
    let (name, kind) = unit.rsplit_once('.')?;
    match kind {
        "service" => Some(name),
        kind => UNIT_KINDS.contains(&kind).then_some(unit),
    }
}

/// Every unit that has a file, and every init script.
fn all_units() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for dir in ["/lib/systemd/system", "/usr/lib/systemd/system", "/etc/systemd/system"].map(Path::new) {
        // Where /lib is /usr/lib the second one is enough.
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        found.extend(entries.filter_map(|entry| told(entry.file_name().to_str()?).map(str::to_owned)));
    }
    let scripts = std::fs::read_dir("/etc/init.d").into_iter().flatten().flatten();
    let is_script = |entry: &std::fs::DirEntry| {
        use std::os::unix::fs::PermissionsExt;
        entry.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
    };
    found.extend(scripts.filter(is_script).filter_map(|entry| entry.file_name().into_string().ok()));
    found
}

fn read_unit_files(text: &str, state: &str) -> BTreeSet<String> {
    let columns = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    columns
        .filter_map(|columns| match columns[..] {
            [unit, known, ..] if known == state => told(unit).map(str::to_owned),
            _ => None,
        })
        .collect()
}

fn read_running(text: &str) -> BTreeSet<String> {
    let columns =
        text.lines().map(|line| line.trim_start_matches(['●', '*', ' ']).split_whitespace().collect::<Vec<_>>());
    columns
        .filter_map(|columns| match columns[..] {
            [unit, _, _, "running", ..] => told(unit).map(str::to_owned),
            _ => None,
        })
        .collect()
}

/// `Key=value` lines; `{ a=b ; c=d }` is a map, and the lists of other units are lists.
fn read_properties(text: &str) -> Map {
    let mut found = Map::new();
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let value = match key {
            _ if value.starts_with('{') => {
                let inner = value.replace(['{', '}'], "");
                let pairs = inner
                    .split(" ; ")
                    .filter_map(|item| item.split_once('='))
                    .map(|(key, value)| (key.trim(), value.trim()));
                Value::map(pairs)
            }
            "Before" | "After" | "Wants" => Value::list(value.split_whitespace()),
            _ => value.into(),
        };
        found.insert(key, value);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::Bench;

    #[test]
    fn names_become_units() {
        assert_eq!(unit("nginx"), "nginx.service");
        assert_eq!(unit("cron.timer"), "cron.timer");
        assert_eq!(unit("postgresql@15.main"), "postgresql@15.main.service");
    }

    #[test]
    fn unit_files_are_read_by_state() {
        let text = "ssh.service                 enabled         enabled\n\
            sshd.service                alias           -\n\
            apt-daily.timer             enabled         enabled\n\
            getty@.service              enabled         enabled\n\
            foo.slice                   static          -\n\
            rescue.service              static          -\n";
        assert_eq!(Vec::from_iter(read_unit_files(text, "enabled")), ["apt-daily.timer", "getty@", "ssh"]);
        assert_eq!(Vec::from_iter(read_unit_files(text, "static")), ["rescue"]);
    }

    #[test]
    fn running_units_are_read() {
        let text = "  cron.service      loaded active running Regular background program\n● bad.service      loaded failed failed  Bad\n  dbus.socket       loaded active running D-Bus\n  init.scope        loaded active running System\n  x.mount           loaded active mounted X\n";
        assert_eq!(Vec::from_iter(read_running(text)), ["cron", "dbus.socket"]);
    }

    #[test]
    fn properties_are_read_in_salts_shape() {
        let text = "Type=notify\n\
            ExecStart={ path=/usr/sbin/nginx ; argv[]=/usr/sbin/nginx -g daemon on; ; ignore_errors=no ; pid=0 }\n\
            After=network.target basic.target\n\
            Environment=A=b\n";
        let found = Value::Map(read_properties(text));
        assert_eq!(found.get("ExecStart").and_then(|exec| exec.get("path")), Some(&"/usr/sbin/nginx".into()));
        assert_eq!(found.get("After"), Some(&Value::list(["network.target", "basic.target"])));
        assert_eq!(found.get("Environment"), Some(&"A=b".into()));
    }

    #[tokio::test]
    async fn names_that_look_like_options_are_refused() {
        assert!(Bench::new().fail("service.enabled", &["--now".into()], &[]).await.contains("must be a name"));
    }

    #[tokio::test]
    async fn without_systemd_the_reason_is_told() {
        if is_systemd_running() {
            return;
        }
        let text = Bench::new().fail("service.start", &["nginx".into()], &[]).await;
        assert_eq!(text, "ERROR: systemd is not running on this minion, so its services cannot be reached");
    }
}
