//! The outermost layer of iCal: folded lines, property names, parameters, and the escapes of text (RFC 5545, 3.1).

use super::BadCalendar;

/// One unfolded line: `NAME;PARAM=value:value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Where it begins in the text, counted from 1.
    pub(super) number: usize,
    /// The property's name in capitals.
    pub(super) name: String,
    /// Its parameters; a list is joined by commas again.
    pub(super) params: Vec<(String, String)>,
    /// What follows the colon, escapes and all.
    pub(super) value: String,
}

impl Line {
    /// The value of a parameter, whose name is given in capitals.
    pub(super) fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(param, _)| param == name).map(|(_, value)| value.as_str())
    }

    /// The value as text, its escapes undone.
    pub(super) fn text(&self) -> String {
        let mut text = String::with_capacity(self.value.len());
        let mut chars = self.value.chars();
        while let Some(c) = chars.next() {
            if c != '\\' {
                text.push(c);
                continue;
            }
            match chars.next() {
                Some('n' | 'N') => text.push('\n'),
                Some(other) => text.push(other),
                None => text.push('\\'),
            }
        }
        text
    }

    /// An error at this line.
    pub(super) fn bad(&self, problem: impl Into<String>, hint: impl Into<String>) -> BadCalendar {
        BadCalendar::at(self.number, problem, hint)
    }
}

/// The lines of a text, unfolded; blank ones are left out.
pub(super) fn unfold(text: &str) -> impl Iterator<Item = (usize, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows = text.split('\n').map(|row| row.strip_suffix('\r').unwrap_or(row)).enumerate().peekable();
    std::iter::from_fn(move || {
        loop {
            let (at, first) = rows.next()?;
            let mut line = first.to_owned();
            while let Some((_, row)) = rows.next_if(|(_, row)| row.starts_with([' ', '\t'])) {
                line.push_str(&row[1..]);
            }
            if !line.trim().is_empty() {
                return Some((at + 1, line));
            }
        }
    })
}

/// Takes an unfolded line apart.
pub(super) fn parse(number: usize, text: &str) -> Result<Line, BadCalendar> {
    let name_len = text.find([';', ':']).ok_or_else(|| no_colon(number, text))?;
    let (name, mut rest) = text.split_at(name_len);
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Err(no_colon(number, text));
    }
    let mut params = Vec::new();
    while let Some(after) = rest.strip_prefix(';') {
        let (name, after) = after.split_once('=').ok_or_else(|| {
            let problem = format!("a parameter of {} has no value", quoted(name));
            BadCalendar::at(number, problem, "write parameters as `;NAME=value` before the colon")
        })?;
        let (value, after) = param_value(number, after)?;
        params.push((name.to_ascii_uppercase(), value));
        rest = after;
    }
    let value = rest.strip_prefix(':').ok_or_else(|| no_colon(number, text))?;
    Ok(Line { number, name: name.to_ascii_uppercase(), params, value: value.to_owned() })
}

/// A parameter's value, quoted or not, and what comes after it.
fn param_value(number: usize, text: &str) -> Result<(String, &str), BadCalendar> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        if let Some(inside) = rest.strip_prefix('"') {
            let (part, after) = inside.split_once('"').ok_or_else(|| {
                BadCalendar::at(number, "a quoted parameter does not end", "close it with a second quotation mark")
            })?;
            value.push_str(part);
            rest = after;
        } else {
            let end = rest.find([',', ';', ':']).unwrap_or(rest.len());
            value.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        match rest.strip_prefix(',') {
            Some(after) => {
                value.push(',');
                rest = after;
            }
            None => return Ok((value, rest)),
        }
    }
}

fn no_colon(number: usize, text: &str) -> BadCalendar {
    let problem = format!("{} is not a line of the form NAME:value", quoted(text));
    BadCalendar::at(number, problem, "a line break inside a text is written as \\n, a long line goes on after a space")
}

/// What the text says, for an error: on one line, and not all of it.
pub(super) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_lines_are_joined_and_keep_the_number_of_their_first_row() {
        let lines: Vec<_> = unfold("\u{feff}A:1\r\n\r\nSUMMARY:long\r\n  er\r\n\tone\nB:2\n").collect();
        assert_eq!(lines, [(1, "A:1".to_owned()), (3, "SUMMARY:long erone".to_owned()), (6, "B:2".to_owned())]);
    }

    #[test]
    fn parameters_may_be_quoted_and_lists() {
        let line = parse(1, "dtstart;TZID=\"(UTC+01:00) A, B\";X=a,\"b;c\":2025:x").unwrap();
        assert_eq!(line.name, "DTSTART");
        assert_eq!(line.param("TZID"), Some("(UTC+01:00) A, B"));
        assert_eq!(line.param("X"), Some("a,b;c"));
        assert_eq!(line.value, "2025:x");
    }

    #[test]
    fn escapes_of_text_are_undone() {
        let line = parse(1, r"SUMMARY:a\, b\; c\\ d\ne\N").unwrap();
        assert_eq!(line.text(), "a, b; c\\ d\ne\n");
    }

    #[test]
    fn what_is_no_property_is_refused_with_its_line() {
        for text in ["no colon at all", ":value", "A;B:1", "A;B=\"x:1", "A B:1"] {
            assert_eq!(parse(7, text).unwrap_err().line, 7, "{text}");
        }
    }
}
