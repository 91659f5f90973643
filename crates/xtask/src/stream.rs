//! Runs a command, shows its output as it comes, and remembers what a report needs of it.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

/// How many lines of a failed phase are shown again at the end.
const TAIL_LINES: usize = 40;

/// The tests that ran and the last lines printed, over one or more commands.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    tail: VecDeque<String>,
}

impl Record {
    /// Runs a command to its end; false when it failed.
    pub(crate) fn run(&mut self, command: &mut Command) -> Result<bool> {
        let shown = format!("{command:?}");
        // One pipe for both streams keeps their order, which two readers could not.
        let (reader, writer) = std::io::pipe()?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let child = command.spawn();
        // The command keeps the writing end open until its streams are replaced.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = child.with_context(|| format!("cannot run {shown}"))?;

        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line);
            print!("{text}");
            self.take_line(text.trim_end());
            line.clear();
        }
        Ok(child.wait()?.success())
    }

    /// The last lines printed.
    pub(crate) fn tail(&self) -> impl Iterator<Item = &str> {
        self.tail.iter().map(String::as_str)
    }

    /// Takes note of a line of output.
    pub(crate) fn take_line(&mut self, line: &str) {
        if let Some((passed, failed)) = test_result(line) {
            self.passed += passed;
            self.failed += failed;
        }
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(line.to_owned());
    }
}

/// The counts in the line cargo's test harness ends with: `test result: ok. 12 passed; 0 failed; 0 ignored; …`.
fn test_result(line: &str) -> Option<(u64, u64)> {
    let (_verdict, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |word: &str| {
        let part = counts.split("; ").find(|part| part.ends_with(word))?;
        part.split_whitespace().next()?.parse().ok()
    };
    Some((count(" passed")?, count(" failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_the_harness_and_from_nothing_else() {
        let ok = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.09s";
        let bad = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.03s";
        assert_eq!(test_result(ok), Some((12, 0)));
        assert_eq!(test_result(bad), Some((3, 2)));
        assert_eq!(test_result("test result_of_a_job ... ok"), None);
        assert_eq!(test_result("test result: maybe"), None);
    }

    #[test]
    fn both_streams_are_counted_and_kept_in_order() {
        let mut record = Record::default();
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo one; echo 'test result: ok. 2 passed; 1 failed; 0 ignored' >&2; echo three; exit 3"]);
        assert!(!record.run(&mut shell).unwrap());
        assert_eq!((record.passed, record.failed), (2, 1));
        let tail: Vec<&str> = record.tail().collect();
        assert_eq!(tail, ["one", "test result: ok. 2 passed; 1 failed; 0 ignored", "three"]);
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut record = Record::default();
        assert!(record.run(Command::new("seq").arg("1000")).unwrap());
        assert_eq!(record.tail().count(), TAIL_LINES);
        assert_eq!(record.tail().last(), Some("1000"));
    }
}
