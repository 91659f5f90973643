//! `system.*`: the machine as a whole.
//!
//! What ends the machine is begun only after the answer has had its time to reach the master.

use super::call::Answer;
use super::command::Command;
use super::{Call, Failure, Function, Param, find_program};
use crate::clock;
use futures_util::FutureExt;
use saltern_core::time::Timestamp;
use std::process::Stdio;
use std::time::Duration;

const AT_TIME: Param = Param::Optional("at_time", "None");
const UTC_OFFSET: Param = Param::Optional("utc_offset", "None");

/// How long the answer has before the machine goes. If that is not enough it is in the spool, and sent after the boot.
const HEAD_START: Duration = Duration::from_secs(3);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "system.get_system_date",
        params: &[UTC_OFFSET],
        doc: "Tell the date: 'Wed 06/03/2026'.\n\n\
              CLI Example:\n\n    saltern run '*' system.get_system_date utc_offset=-0500\n",
        run: |call| async move { date(&call, "%a %m/%d/%Y").await }.boxed(),
    },
    Function {
        name: "system.get_system_date_time",
        params: &[UTC_OFFSET],
        doc: "Tell date and time: '2026-06-03 17:30:00'.\n\n\
              CLI Example:\n\n    saltern run '*' system.get_system_date_time utc_offset=-0500\n",
        run: |call| async move { date(&call, "%Y-%m-%d %H:%M:%S").await }.boxed(),
    },
    Function {
        name: "system.get_system_time",
        params: &[UTC_OFFSET],
        doc: "Tell the time: '05:30:00 PM'.\n\n\
              CLI Example:\n\n    saltern run '*' system.get_system_time utc_offset=-0500\n",
        run: |call| async move { date(&call, "%I:%M:%S %p").await }.boxed(),
    },
    Function {
        name: "system.halt",
        params: &[],
        doc: "Halt the machine. The answer comes before it goes.\n\nCLI Example:\n\n    saltern run '*' system.halt\n",
        run: |call| call.at_once(|_| soon(&[&["halt"], &["systemctl", "halt"]])),
    },
    Function {
        name: "system.poweroff",
        params: &[],
        doc: "Switch the machine off. The answer comes before it goes.\n\n\
              CLI Example:\n\n    saltern run '*' system.poweroff\n",
        run: |call| call.at_once(|_| soon(&[&["poweroff"], &["systemctl", "poweroff"]])),
    },
    Function {
        name: "system.reboot",
        params: &[AT_TIME],
        doc: "Reboot the machine: at once, in at_time minutes, or at a time such as 17:30. The answer comes before it goes.\n\n\
              CLI Example:\n\n    saltern run '*' system.reboot\n    saltern run '*' system.reboot at_time=10\n",
        run: |call| {
            async move { shut_down(&call, "-r", &[&["shutdown", "-r", "now"], &["systemctl", "reboot"], &["reboot"]]).await }.boxed()
        },
    },
    Function {
        name: "system.shutdown",
        params: &[AT_TIME],
        doc: "Shut the machine down: at once, in at_time minutes, or at a time such as 17:30. The answer comes before it goes.\n\n\
              CLI Example:\n\n    saltern run '*' system.shutdown\n    saltern run '*' system.shutdown at_time=5\n",
        run: |call| {
            async move {
                shut_down(&call, "-h", &[&["shutdown", "-h", "now"], &["systemctl", "poweroff"], &["poweroff"]]).await
            }
            .boxed()
        },
    },
];

/// A time is `shutdown`'s to keep; without one we leave ourselves time to answer.
async fn shut_down(call: &Call, option: &str, now: &[&[&str]]) -> Answer {
    match call.opt_text("at_time")?.filter(|time| time != "now") {
        None => soon(now),
        Some(time) => {
            check_time(&time)?;
            let done = Command::tool("shutdown").args([option, &time]).run(&call.context).await?;
            if !done.is_ok() {
                return Err(Failure::Command(done.complaint()));
            }
            // What will happen when stands in the error output.
            Ok(String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).trim().to_owned().into())
        }
    }
}

/// Minutes, with or without a plus, or a time of day.
fn check_time(time: &str) -> Result<(), Failure> {
    let is_number = |text: &str| !text.is_empty() && text.len() <= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = time.split_once(':').is_some_and(|(hour, minute)| is_number(hour) && is_number(minute));
    if is_time || is_number(time.strip_prefix('+').unwrap_or(time)) {
        return Ok(());
    }
    Err(Failure::Arguments("'at_time' must be a number of minutes or a time such as 17:30".into()))
}

/// Runs the first of these that is installed, in a moment and on its own: it must outlive this job and this agent.
fn soon(choices: &[&[&str]]) -> Answer {
    let found = choices.iter().find_map(|choice| Some((find_program(choice.first()?)?, choice.get(1..)?)));
    let Some((program, args)) = found else {
        let name = choices.first().and_then(|choice| choice.first()).copied().unwrap_or_default();
        return Err(Failure::Command(format!("{name} was not found on this minion")));
    };
    later(HEAD_START, &program.to_string_lossy(), args)?;
    Ok("".into())
}

fn later(delay: Duration, program: &str, args: &[&str]) -> std::io::Result<()> {
    let script = format!("sleep {}; exec \"$@\"", delay.as_secs_f64());
    tokio::process::Command::new("/bin/sh")
        .args(["-c", &script, "sh", program])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map(drop)
}

async fn date(call: &Call, format: &str) -> Answer {
    let mut command = Command::tool("date").args([format!("+{format}")]);
    if let Some(offset) = call.opt_text("utc_offset")? {
        let seconds = offset_seconds(&offset)?;
        let Timestamp(micros) = clock::now();
        command = command.args(["-u", "-d", &format!("@{}", micros / 1_000_000 + seconds)]);
    }
    Ok(command.succeed(&call.context).await?.text().trim().to_owned().into())
}

/// `+0530`, `-0500`
fn offset_seconds(text: &str) -> Result<i64, Failure> {
    let wrong = || Failure::Command("Invalid UTC offset".into());
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: i64 = digits.parse().map_err(|_| wrong())?;
    Ok(sign * (number / 100 * 3600 + number % 100 * 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::Bench;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn what_comes_later_runs_on_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        later(Duration::from_millis(10), "/bin/sh", &["-c", &format!("echo done >{}", pipe.display())]).unwrap();
        let mut text = String::new();
        tokio::fs::File::open(&pipe).await.unwrap().read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "done\n");
    }

    #[test]
    fn times_are_minutes_or_of_the_day() {
        for good in ["10", "+5", "17:30"] {
            assert!(check_time(good).is_ok(), "{good}");
        }
        for bad in ["", "-c", "tomorrow", "17:", "now; rm"] {
            assert!(check_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn offsets_are_hours_and_minutes() {
        assert_eq!(offset_seconds("-0530").unwrap(), -19_800);
        assert_eq!(offset_seconds("+0100").unwrap(), 3600);
        assert!(offset_seconds("5").is_err());
    }

    #[tokio::test]
    async fn the_date_is_told_with_an_offset() {
        let (before, bench) = (clock::now(), Bench::new());
        let told = bench.call("system.get_system_date_time", &[], &[("utc_offset", "+0000".into())]).await;
        let Timestamp(told) = Timestamp::parse(&format!("{}Z", told.as_str().unwrap().replace(' ', "T"))).unwrap();
        assert!((before.0 / 1_000_000..=clock::now().0 / 1_000_000).contains(&(told / 1_000_000)));
    }
}
