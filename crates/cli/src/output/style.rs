//! Colours: on a terminal only, and not where `NO_COLOR` is set.

use std::io::{self, IsTerminal};

/// A colour, named after what it is used for in Salt's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Good
    Green,
    /// Names and what has changed
    Cyan,
    /// Bad
    Red,
    /// Numbers, truth values, what would change
    Yellow,
    /// Of less interest
    Grey,
}

/// Whether to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    colours: bool,
}

impl Style {
    /// None.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { colours: false };

    /// As fits stdout.
    pub(crate) fn of_stdout() -> Self {
        Self { colours: io::stdout().is_terminal() && colours_wanted() }
    }

    /// As fits stderr.
    pub(crate) fn of_stderr() -> Self {
        Self { colours: io::stderr().is_terminal() && colours_wanted() }
    }

    /// `text` in `colour`.
    pub(crate) fn paint(self, colour: Colour, text: &str) -> String {
        if !self.colours {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Green => "0;32",
            Colour::Cyan => "0;36",
            Colour::Red => "0;31",
            Colour::Yellow => "0;1;33",
            Colour::Grey => "0;90",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

fn colours_wanted() -> bool {
    let unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
    unset("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_plain() {
        assert_eq!(Style::PLAIN.paint(Colour::Red, "x"), "x");
        assert_eq!(Style { colours: true }.paint(Colour::Red, "x"), "\x1b[0;31mx\x1b[0m");
    }
}
