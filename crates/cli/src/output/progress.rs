//! One line that tells how a job is going, on a terminal only, always the last one.

use super::when;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// The line.
pub(crate) struct Progress {
    enabled: bool,
    shown: bool,
}

/// How a job is going.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Going {
    /// Minions it is for
    pub(crate) total: usize,
    /// Those that have answered
    pub(crate) answered: usize,
    /// Those that have begun and not answered
    pub(crate) running: usize,
}

impl Progress {
    /// A line, if stderr is a terminal.
    pub(crate) fn new() -> Self {
        Self { enabled: io::stderr().is_terminal(), shown: false }
    }

    /// Shows it.
    pub(crate) fn show(&mut self, going: Going, elapsed: Duration) {
        if self.enabled {
            self.write(&text(going, elapsed));
        }
    }

    /// Shows something else; where there is no terminal, as a line of its own.
    pub(crate) fn say(&mut self, line: &str, elapsed: Duration) {
        if self.enabled {
            self.write(&format!("{line}, {}", when::span(elapsed)));
        } else {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    /// A terminal that cannot be written to is no reason to stop waiting for the job.
    fn write(&mut self, line: &str) {
        let _ = write!(io::stderr(), "\r\x1b[2K{line}");
        self.shown = true;
    }

    /// Whether a line can be shown again and again.
    pub(crate) fn is_live(&self) -> bool {
        self.enabled
    }

    /// Takes it away, so that something else can be printed.
    pub(crate) fn clear(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[2K");
            self.shown = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn text(going: Going, elapsed: Duration) -> String {
    let Going { total, answered, running } = going;
    let running = if running > 0 { format!(", {running} running") } else { String::new() };
    format!("{answered} of {total} answered{running}, {}", when::span(elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_counts() {
        let going = Going { total: 200, answered: 12, running: 3 };
        assert_eq!(text(going, Duration::from_secs(7)), "12 of 200 answered, 3 running, 7 s");
        assert_eq!(text(Going { running: 0, ..going }, Duration::from_secs(7)), "12 of 200 answered, 7 s");
    }
}
