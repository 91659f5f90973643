//! Salt's regular expression filters: Python's `re`, over `fancy-regex`.

use fancy_regex::{Captures, Regex, RegexBuilder};
use minijinja::value::{Rest, Tuple, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, Value};

use super::args::Args;

pub(super) fn install(env: &mut Environment<'_>) {
    env.add_filter("regex_search", |text: &str, args: Rest<ValueOrKwargs>| groups(text, &args.into_values(), false));
    env.add_filter("regex_match", |text: &str, args: Rest<ValueOrKwargs>| groups(text, &args.into_values(), true));
    env.add_filter("regex_replace", |text: &str, args: Rest<ValueOrKwargs>| replace(text, &args.into_values()));
    env.add_filter("regex_escape", |text: &str| fancy_regex::escape(text).into_owned());
    env.add_test("match", |text: &str, args: Rest<ValueOrKwargs>| {
        groups(text, &args.into_values(), true).map(|found| !found.is_none())
    });
}

/// The groups of the first match as a tuple, the whole match if there are no groups, `None` without a match.
fn groups(text: &str, args: &[Value], at_start: bool) -> Result<Value, Error> {
    let args = Args::new(args);
    let regex = compile(&args, 1, at_start)?;
    let Some(found) = regex.captures(text).map_err(gave_up)? else { return Ok(Value::from(())) };
    let first = usize::from(found.len() > 1);
    let group = |n| found.get(n).map_or_else(|| Value::from(()), |group| Value::from(group.as_str()));
    Ok(Value::from(Tuple::from((first..found.len()).map(group).collect::<Vec<_>>())))
}

fn replace(text: &str, args: &[Value]) -> Result<String, Error> {
    let args = Args::new(args);
    let by = args.need_text(1, "val")?;
    let regex = compile(&args, 2, false)?;
    let mut out = String::new();
    let mut from = 0;
    for found in regex.captures_iter(text) {
        let found = found.map_err(gave_up)?;
        let Some(whole) = found.get(0) else { continue };
        out.push_str(&text[from..whole.start()]);
        expand(&by, &found, &mut out)?;
        from = whole.end();
    }
    out.push_str(&text[from..]);
    Ok(out)
}

fn compile(args: &Args<'_>, flags_at: usize, at_start: bool) -> Result<Regex, Error> {
    let pattern = args.need_text(0, "rgx")?;
    let flags = match (args.flag(flags_at, "ignorecase"), args.flag(flags_at + 1, "multiline")) {
        (true, true) => "(?im)",
        (true, false) => "(?i)",
        (false, true) => "(?m)",
        (false, false) => "",
    };
    let anchored = if at_start { format!(r"\A{flags}(?:{pattern})") } else { format!("{flags}{pattern}") };
    RegexBuilder::new(&anchored)
        .backtrack_limit(100_000)
        .build()
        .map_err(|err| Error::new(ErrorKind::InvalidOperation, format!("bad regular expression: {err}")))
}

fn gave_up(err: fancy_regex::Error) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("regular expression: {err}"))
}

/// Python's replacement text: `\1`, `\g<1>`, `\g<name>`, and the usual escapes.
fn expand(by: &str, found: &Captures<'_, str>, out: &mut String) -> Result<(), Error> {
    let mut chars = by.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('\\') | None => out.push('\\'),
            Some('g') if chars.peek() == Some(&'<') => {
                let name: String = chars.by_ref().skip(1).take_while(|c| *c != '>').collect();
                let group = name.parse().map_or_else(|_| found.name(&name), |n| found.get(n));
                out.push_str(group.map_or("", |group| group.as_str()));
            }
            Some(digit) if digit.is_ascii_digit() => {
                let mut number = String::from(digit);
                number.extend(chars.next_if(char::is_ascii_digit));
                let group: usize = number.parse().unwrap_or(usize::MAX);
                if group >= found.len() {
                    let problem = format!("invalid group reference {number}");
                    return Err(Error::new(ErrorKind::InvalidOperation, problem));
                }
                out.push_str(found.get(group).map_or("", |group| group.as_str()));
            }
            Some(other) => out.extend(['\\', other]),
        }
    }
    Ok(())
}
