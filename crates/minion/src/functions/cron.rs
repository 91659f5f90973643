//! `cron.*`: the crontabs of users, changed through `crontab` itself.

mod tab;

use super::call::Answer;
use super::command::{Command, blocking, operand};
use super::{Call, Failure, Function, Param, accounts};
use futures_util::FutureExt;
use saltern_core::value::Value;
use tab::{Change, Job, Tab, When};

const USER: Param = Param::Required("user");
const CMD: Param = Param::Required("cmd");
const IDENTIFIER: Param = Param::Optional("identifier", "None");
const FIELDS: [&str; 5] = ["minute", "hour", "daymonth", "month", "dayweek"];

const RM_JOB: &[Param] = &[
    USER,
    CMD,
    Param::Optional("minute", "None"),
    Param::Optional("hour", "None"),
    Param::Optional("daymonth", "None"),
    Param::Optional("month", "None"),
    Param::Optional("dayweek", "None"),
    IDENTIFIER,
];

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "cron.get_entry",
        params: &[USER, IDENTIFIER, Param::Optional("cmd", "None")],
        doc: "Tell about one job, found by its identifier or its command; False if there is none.\n\n\
              CLI Example:\n\n    saltern run '*' cron.get_entry root identifier=task1\n",
        run: |call| async move { get_entry(&call).await }.boxed(),
    },
    Function {
        name: "cron.list_tab",
        params: &[USER],
        doc: "Tell what is in a user's crontab.\n\nCLI Example:\n\n    saltern run '*' cron.list_tab root\n",
        run: |call| async move { Ok(Tab::read(&raw(&call).await?).told().into()) }.boxed(),
    },
    Function {
        name: "cron.ls",
        params: &[USER],
        doc: "The same as cron.list_tab.\n\nCLI Example:\n\n    saltern run '*' cron.ls root\n",
        run: |call| async move { Ok(Tab::read(&raw(&call).await?).told().into()) }.boxed(),
    },
    Function {
        name: "cron.raw_cron",
        params: &[USER],
        doc: "Give a user's crontab as it is written.\n\nCLI Example:\n\n    saltern run '*' cron.raw_cron root\n",
        run: |call| async move { Ok(raw(&call).await?.into()) }.boxed(),
    },
    Function {
        name: "cron.rm",
        params: RM_JOB,
        doc: "The same as cron.rm_job.\n\nCLI Example:\n\n    saltern run '*' cron.rm root /usr/local/weekly\n",
        run: |call| async move { remove_job(&call).await }.boxed(),
    },
    Function {
        name: "cron.rm_env",
        params: &[USER, Param::Required("name")],
        doc: "Remove a variable from a user's crontab: 'removed' or 'absent'.\n\n\
              CLI Example:\n\n    saltern run '*' cron.rm_env root MAILTO\n",
        run: |call| {
            async move {
                let name = call.text("name")?;
                change(&call, |tab| tab.remove_env(&name)).await
            }
            .boxed()
        },
    },
    Function {
        name: "cron.rm_job",
        params: RM_JOB,
        doc: "Remove a job from a user's crontab, found by its command or its identifier, and by its fields where they are given:\n\
              'removed' or 'absent'.\n\n\
              CLI Example:\n\n    saltern run '*' cron.rm_job root /usr/local/weekly\n    saltern run '*' cron.rm_job root /usr/bin/foo dayweek=1\n",
        run: |call| async move { remove_job(&call).await }.boxed(),
    },
    Function {
        name: "cron.rm_special",
        params: &[USER, CMD, Param::Optional("special", "None"), IDENTIFIER],
        doc: "Remove a job that runs at a special time: 'removed' or 'absent'.\n\n\
              CLI Example:\n\n    saltern run '*' cron.rm_special root /usr/bin/foo\n",
        run: |call| {
            async move {
                let (command, special, identifier) =
                    (call.text("cmd")?, call.opt_text("special")?, call.opt_text("identifier")?);
                change(&call, |tab| tab.remove_special(&command, special.as_deref(), identifier.as_deref())).await
            }
            .boxed()
        },
    },
    Function {
        name: "cron.set_env",
        params: &[USER, Param::Required("name"), Param::Optional("value", "None")],
        doc: "Set a variable in a user's crontab: 'new', 'updated' or 'present'.\n\n\
              CLI Example:\n\n    saltern run '*' cron.set_env root MAILTO user@example.com\n",
        run: |call| async move { set_env(&call).await }.boxed(),
    },
    Function {
        name: "cron.set_job",
        params: &[
            USER,
            Param::Required("minute"),
            Param::Required("hour"),
            Param::Required("daymonth"),
            Param::Required("month"),
            Param::Required("dayweek"),
            CMD,
            Param::Optional("commented", "False"),
            Param::Optional("comment", "None"),
            IDENTIFIER,
        ],
        doc: "Set a job in a user's crontab: 'new', 'updated' or 'present'. A field may be 'random', or a range such as 2:5 to choose from.\n\n\
              CLI Example:\n\n    saltern run '*' cron.set_job root '*' '*' '*' '*' 1 /usr/local/weekly\n",
        run: |call| async move { set_job(&call).await }.boxed(),
    },
    Function {
        name: "cron.set_special",
        params: &[
            USER,
            Param::Required("special"),
            CMD,
            Param::Optional("commented", "False"),
            Param::Optional("comment", "None"),
            IDENTIFIER,
        ],
        doc: "Set a job that runs at a special time: 'new', 'updated' or 'present'.\n\n\
              CLI Example:\n\n    saltern run '*' cron.set_special root @hourly 'echo foobar'\n",
        run: |call| {
            async move {
                let when = When::Special(one_line(&call, "special")?);
                set(&call, when).await
            }
            .boxed()
        },
    },
];

async fn get_entry(call: &Call) -> Answer {
    let (identifier, command) = (call.opt_text("identifier")?, call.opt_text("cmd")?);
    let tab = Tab::read(&raw(call).await?);
    Ok(tab.find(identifier.as_deref(), command.as_deref()).map_or(Value::Bool(false), Job::told).into())
}

async fn set_job(call: &Call) -> Answer {
    let mut fields = <[String; 5]>::default();
    for (field, name) in fields.iter_mut().zip(FIELDS) {
        *field = one_line(call, name)?.to_lowercase();
        if field.is_empty() || field.contains(char::is_whitespace) {
            return Err(Failure::Arguments(format!("'{name}' must be a field of a crontab")));
        }
    }
    set(call, When::At(fields)).await
}

async fn set(call: &Call, when: When) -> Answer {
    let job = Job {
        when,
        command: one_line(call, "cmd")?,
        identifier: call.opt_text("identifier")?.map(|identifier| identifier.replace('\n', " ")),
        comment: call.opt_text("comment")?,
        is_commented: call.flag("commented", false),
    };
    change(call, |tab| tab.set(job, pick)).await
}

async fn remove_job(call: &Call) -> Answer {
    let (command, identifier) = (call.text("cmd")?, call.opt_text("identifier")?);
    let mut fields = [const { None }; 5];
    for (field, name) in fields.iter_mut().zip(FIELDS) {
        *field = call.opt_text(name)?;
    }
    change(call, |tab| tab.remove(&command, &fields, identifier.as_deref())).await
}

async fn set_env(call: &Call) -> Answer {
    let (name, value) = (one_line(call, "name")?, call.opt_text("value")?.unwrap_or_default().replace('\n', " "));
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '=') {
        return Err(Failure::Arguments("'name' must be the name of a variable".into()));
    }
    change(call, |tab| tab.set_env(&name, &value)).await
}

/// Reads the tab, changes it, and writes it if it is another one.
async fn change(call: &Call, change: impl FnOnce(&mut Tab) -> Change + Send) -> Answer {
    let mut tab = Tab::read(&raw(call).await?);
    let outcome = change(&mut tab);
    if outcome.is_change() {
        let done =
            Command::tool("crontab").args(whose(call).await?).args(["-"]).stdin(tab.write()).run(&call.context).await?;
        if !done.is_ok() {
            // Salt gives what crontab said in place of the word.
            return Ok(done.complaint().into());
        }
    }
    Ok(outcome.word().into())
}

/// The tab as it is written; a user without one has an empty one.
async fn raw(call: &Call) -> Result<String, Failure> {
    let done = Command::tool("crontab").args(whose(call).await?).args(["-l"]).run(&call.context).await?;
    if !done.is_ok() && !done.complaint().contains("no crontab for") {
        return Err(Failure::Command(done.complaint()));
    }
    let text = if done.is_ok() { done.text() } else { String::new() };
    Ok(without_header(&text).to_owned())
}

/// The option that names the user; only root may use it, and nobody needs it for himself.
async fn whose(call: &Call) -> Result<Vec<String>, Failure> {
    let user = operand(call, "user")?;
    let own = blocking(|| accounts::user_of(rustix::process::geteuid().as_raw())).await?;
    Ok(if own.is_some_and(|own| own.name == user) { Vec::new() } else { vec!["-u".into(), user] })
}

/// Some versions show three lines that they write themselves.
fn without_header(text: &str) -> &str {
    if !text.starts_with("# DO NOT EDIT THIS FILE - edit the master and reinstall.") {
        return text;
    }
    text.match_indices('\n').nth(2).map_or("", |(at, _)| &text[at + 1..])
}

/// A line break in a command or a field would be another job.
fn one_line(call: &Call, name: &str) -> Result<String, Failure> {
    let text = call.text(name)?;
    if text.contains(['\n', '\r']) {
        return Err(Failure::Arguments(format!("'{name}' must be one line")));
    }
    Ok(text)
}

/// A number below `limit`.
fn pick(limit: u32) -> u32 {
    let mut random = [0; 4];
    // Without randomness every minion picks the same, which is worse but not wrong.
    let _ = getrandom::fill(&mut random);
    u32::from_le_bytes(random) % limit.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::Bench;

    #[test]
    fn the_header_of_some_versions_is_left_out() {
        let text = "# DO NOT EDIT THIS FILE - edit the master and reinstall.\n\
            # (- installed on x)\n\
            # (Cron version)\n\
            0 1 * * * x\n";
        assert_eq!(without_header(text), "0 1 * * * x\n");
        assert_eq!(without_header("0 1 * * * x\n"), "0 1 * * * x\n");
    }

    #[tokio::test]
    async fn a_command_of_two_lines_is_refused() {
        let args: Vec<Value> = ["root", "1", "1", "*", "*", "*", "a\nb"].map(Value::from).into();
        assert!(Bench::new().fail("cron.set_job", &args, &[]).await.contains("must be one line"));
    }

    #[tokio::test]
    async fn a_machine_without_cron_says_so() {
        if super::super::find_program("crontab").is_some() {
            return;
        }
        let text = Bench::new().fail("cron.list_tab", &["root".into()], &[]).await;
        assert_eq!(text, "ERROR: crontab was not found on this minion");
    }
}
