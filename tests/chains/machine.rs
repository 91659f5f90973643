//! A machine with a minion on it that can be rebooted, robbed of its power, and asked what was done there.

use rustix::process::{Pid, Signal, kill_process};
use saltern_e2e::native::NativeMinion;
use saltern_testkit::ports::MasterPorts;
use saltern_testkit::salt::{Salt, StockMinion};
use saltern_testkit::scratch::Scratch;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A machine. What its steps write goes into `$FOLDER`, each what was done as a line of `$NOTES`.
pub(crate) struct Machine {
    // Declared before the folder: the agent ends before its files are removed.
    agent: Agent,
    folder: Scratch,
    boots: u32,
}

enum Agent {
    Stock(StockMinion),
    Native(NativeMinion),
}

/// Packages as the tests need them: `version` says which agent is installed, `newest` which one there is, and `update` what an
/// update does to it.
const PKG: &str = r#"
import os
import signal

__virtualname__ = "pkg"


def __virtual__():
    return __virtualname__


def _path(name):
    return os.path.join(os.environ["FOLDER"], name)


def _read(name):
    try:
        with open(_path(name)) as file:
            return file.read().strip()
    except OSError:
        return ""


def _note(line):
    with open(_path("packages"), "a") as file:
        file.write(line + "\n")


def install(name=None, pkgs=None, refresh=False, **kwargs):
    names = [next(iter(pkg)) if isinstance(pkg, dict) else pkg for pkg in pkgs or [name]]
    _note("install {} {}".format(" ".join(names), "fresh" if refresh else "as known"))
    if "salt-minion" not in names:
        return {}
    how, before = _read("update"), _read("version")
    if how != "nothing":
        with open(_path("version"), "w") as file:
            file.write(_read("newest"))
    if how == "kills":
        # As the service manager does it when a package restarts its service: everything of it goes.
        os.killpg(os.getpgid(0), signal.SIGKILL)
    return {"salt-minion": {"old": before, "new": _read("version")}}


def upgrade(refresh=True, **kwargs):
    _note("upgrade {}".format("fresh" if refresh else "as known"))
    return {}


def remove(name=None, pkgs=None, **kwargs):
    _note("remove {}".format(" ".join(pkgs or [name])))
    return {}


def refresh_db(**kwargs):
    _note("refresh")
    return {}


def version(*names, **kwargs):
    return _read("version")


def latest_version(*names, **kwargs):
    return "" if _read("version") == _read("newest") else _read("newest")


def list_pkgs(**kwargs):
    return {}
"#;

/// The same for native machines, which ask the package manager of their distribution: these are found before the real ones.
const APT_GET: &str = r#"#!/bin/sh
case " $* " in *" install "*) ;; *) exit 0 ;; esac
echo "apt-get $*" >> "$FOLDER/packages"
how=$(cat "$FOLDER/update")
[ "$how" = nothing ] || cp "$FOLDER/newest" "$FOLDER/version"
if [ "$how" = kills ]; then kill -9 $PPID; fi
"#;
const APT_CACHE: &str = r#"#!/bin/sh
printf 'salt-minion:\n  Candidate: %s\n' "$(cat "$FOLDER/newest")"
"#;
const DPKG_QUERY: &str = r#"#!/bin/sh
echo "install ok installed salt-minion $(cat "$FOLDER/version") all"
"#;

/// Arms a fault point in every process that a stock minion begins, as long as there is a file that names one, and leaves a
/// mark where it was reached.
const ARM: &str = r#"
import os
import signal

_os_kill = os.kill


def _kill(pid, number):
    if pid == os.getpid() and number == signal.SIGKILL:
        open(os.environ["FOLDER"] + "/cut", "w").close()
    _os_kill(pid, number)


def _arm():
    os.environ.pop("SALTERN_CHAIN_CRASH_AT", None)
    try:
        with open(os.environ["FOLDER"] + "/crash_at") as file:
            os.environ["SALTERN_CHAIN_CRASH_AT"] = file.read()
    except (KeyError, OSError):
        pass


_arm()
os.kill = _kill
os.register_at_fork(after_in_child=_arm)
"#;

impl Machine {
    /// A machine with a stock minion, which runs.
    pub(crate) fn stock(salt: &Salt, id: &str, master: MasterPorts, env: &[(&str, &str)]) -> Self {
        let folder = folder();
        folder.write("modules/pkg.py", PKG);
        folder.write("site/sitecustomize.py", ARM);
        let root = folder.path().display();
        let config = format!("module_dirs: [{root}/modules]\nsaltern_boot_id_file: {root}/boot_id\n");
        let mut minion = StockMinion::prepare(salt, id, master, &config);
        for (name, value) in environment(&folder, env) {
            minion.set_env(&name, value);
        }
        minion.set_env("PYTHONPATH", folder.path().join("site"));
        minion.launch();
        Self { agent: Agent::Stock(minion), folder, boots: 1 }
    }

    /// A machine with a native minion, which runs.
    pub(crate) fn native(id: &str, master: MasterPorts, env: &[(&str, &str)]) -> Self {
        let folder = folder();
        for (name, text) in [("apt-get", APT_GET), ("apt-cache", APT_CACHE), ("dpkg-query", DPKG_QUERY)] {
            program(&folder, name, text);
        }
        let config = format!("saltern_boot_id_file: {}/boot_id\n", folder.path().display());
        let mut minion = NativeMinion::prepare(id, master, &config);
        for (name, value) in environment(&folder, env) {
            minion.set_env(&name, value);
        }
        minion.launch();
        Self { agent: Agent::Native(minion), folder, boots: 1 }
    }

    pub(crate) fn id(&self) -> &str {
        match &self.agent {
            Agent::Stock(minion) => minion.id(),
            Agent::Native(minion) => minion.id(),
        }
    }

    pub(crate) fn is_native(&self) -> bool {
        matches!(self.agent, Agent::Native(_))
    }

    /// Kills the agent with everything it has started, as a power cut does.
    pub(crate) fn kill(&mut self) {
        match &mut self.agent {
            Agent::Stock(minion) => minion.kill(),
            Agent::Native(minion) => minion.kill(),
        }
        // Jobs have process groups of their own, and know where they are.
        let mark = format!("FOLDER={}", self.folder.path().display());
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for process in processes.filter(|process| knows(&process.path(), &mark)) {
            let pid = process.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        }
    }

    /// Starts the agent where it is not running.
    pub(crate) fn start(&mut self) {
        match &mut self.agent {
            Agent::Stock(minion) => minion.launch(),
            Agent::Native(minion) => minion.launch(),
        }
    }

    /// Restarts the agent: the machine stays up.
    pub(crate) fn restart_agent(&mut self) {
        self.kill();
        self.start();
    }

    /// The machine goes down.
    pub(crate) fn go_down(&mut self) {
        self.kill();
        self.boots += 1;
        self.folder.write("boot_id", format!("boot-{}\n", self.boots));
    }

    /// Goes down and comes up again.
    pub(crate) fn reboot(&mut self) {
        self.go_down();
        self.start();
    }

    /// Whether its agent is alive.
    pub(crate) fn is_up(&self) -> bool {
        match &self.agent {
            Agent::Stock(minion) => minion.is_running(),
            Agent::Native(minion) => minion.is_running(),
        }
    }

    /// Cuts the power at a fault point of what comes next; nothing: nowhere. A native agent is started anew for that.
    pub(crate) fn arm(&mut self, point: Option<u32>) {
        self.remove("cut");
        self.remove("crash_at");
        match (&mut self.agent, point) {
            (Agent::Stock(_), Some(point)) => drop(self.folder.write("crash_at", point.to_string())),
            (Agent::Stock(_), None) => {}
            (Agent::Native(minion), Some(point)) => {
                minion.kill();
                minion.set_env("SALTERN_CHAIN_CRASH_AT", point.to_string());
                minion.launch();
            }
            (Agent::Native(minion), None) => minion.remove_env("SALTERN_CHAIN_CRASH_AT"),
        }
    }

    /// Whether the power was cut at the point that was armed.
    pub(crate) fn is_cut_off(&self) -> bool {
        match &self.agent {
            Agent::Stock(_) => self.file("cut").exists(),
            Agent::Native(minion) => !minion.is_running(),
        }
    }

    /// Where the agent keeps what it knows of chains.
    pub(crate) fn chain_folder(&self) -> PathBuf {
        match &self.agent {
            Agent::Stock(minion) => minion.root().join("cache/saltern_chain"),
            Agent::Native(minion) => minion.data_dir().join("chain"),
        }
    }

    /// Whether nothing is kept of a chain.
    pub(crate) fn is_clear(&self) -> bool {
        ["store.json", "store.json.new"].iter().all(|name| !self.chain_folder().join(name).exists())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.folder.write(name, text);
    }

    pub(crate) fn remove(&self, name: &str) {
        let _ = std::fs::remove_file(self.file(name));
    }

    /// The lines of a file; none if there is none.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.file(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// What steps have noted, in one text; it is forgotten.
    pub(crate) fn take_notes(&self) -> String {
        let notes = self.notes();
        for name in ["notes", "begun", "go"] {
            self.remove(name);
        }
        notes
    }

    /// What steps have noted, in one text.
    pub(crate) fn notes(&self) -> String {
        self.lines("notes").concat()
    }

    /// How often it was told to go down.
    pub(crate) fn shutdowns(&self) -> usize {
        self.lines("shutdowns").len()
    }
}

/// Whether a process has this in its environment.
fn knows(process: &Path, mark: &str) -> bool {
    let environ = std::fs::read(process.join("environ")).unwrap_or_default();
    environ.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

/// The folder of a machine, with programs that must not be the real ones.
fn folder() -> Scratch {
    let folder = Scratch::new("mach");
    folder.write("boot_id", "boot-1\n");
    let log = folder.path().join("shutdowns");
    for name in ["shutdown", "reboot", "poweroff", "halt"] {
        program(&folder, name, &format!("#!/bin/sh\necho {name} \"$@\" >> {}\n", log.display()));
    }
    folder
}

/// A program of the machine that is found before the real one.
fn program(folder: &Scratch, name: &str, text: &str) {
    let path = folder.write(&format!("bin/{name}"), text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn environment(folder: &Scratch, more: &[(&str, &str)]) -> Vec<(String, OsString)> {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(folder.path().join("bin")).chain(std::env::split_paths(&inherited));
    let mut all = vec![
        ("PATH".to_owned(), std::env::join_paths(path).unwrap()),
        ("FOLDER".to_owned(), folder.path().into()),
        ("NOTES".to_owned(), folder.path().join("notes").into()),
    ];
    all.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.into())));
    all
}
