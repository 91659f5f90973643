//! Filters over text: quoting, hashing, encoding, checking.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use md5::Md5;
use minijinja::value::{Rest, Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};
use saltern_core::value::Value as Core;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::args::Args;
use super::value::{from_jinja, new_list};
use crate::yaml;

/// The name space of Salt's `uuid` filter, a constant of Salt.
const UUID_SPACE: [u8; 16] =
    [0x91, 0x63, 0x3e, 0xbf, 0x1c, 0x86, 0x5e, 0x33, 0x93, 0x5a, 0x28, 0x06, 0x1f, 0x4b, 0x48, 0x0e];

pub(super) fn install(env: &mut Environment<'_>) {
    env.add_filter("quote", |text: &str| shell_quote(text));
    env.add_filter("yaml_dquote", |text: String| yaml::double_quoted(&text));
    env.add_filter("yaml_squote", |text: String| yaml::single_quoted(&text));
    env.add_filter("yaml_encode", yaml_encode);
    env.add_filter("md5", |text: String| hex(&Md5::digest(text)));
    env.add_filter("sha1", |text: String| hex(&Sha1::digest(text)));
    env.add_filter("sha256", |text: String| hex(&Sha256::digest(text)));
    env.add_filter("sha512", |text: String| hex(&Sha512::digest(text)));
    env.add_filter("uuid", |text: String| uuid(&text));
    env.add_filter("base64_encode", |text: String| base64::engine::general_purpose::STANDARD.encode(text));
    env.add_filter("base64_decode", base64_decode);
    env.add_filter("to_bool", to_bool);
    env.add_filter("to_num", to_num);
    env.add_filter("str_to_num", to_num);
    env.add_filter("is_hex", |value: Value| value.as_str().is_some_and(is_hex));
    env.add_filter("contains_whitespace", |text: &str| text.contains(char::is_whitespace));
    env.add_filter("to_snake_case", to_snake_case);
    env.add_filter("path_join", |first: &str, more: Rest<Value>| path_join(first, &more));
    env.add_filter("is_ip", |value: Value| value.as_str().is_some_and(|text| text.parse::<IpAddr>().is_ok()));
    env.add_filter("is_ipv4", |value: Value| value.as_str().is_some_and(|text| text.parse::<Ipv4Addr>().is_ok()));
    env.add_filter("is_ipv6", |value: Value| value.as_str().is_some_and(|text| text.parse::<Ipv6Addr>().is_ok()));
    env.add_filter("split", split);
    env.add_filter("string", |text: String| text);
}

/// The widest text that padding makes.
const MAX_WIDTH: usize = 10_000;

/// Python's methods of text that the engine's own list lacks; nothing for a method that is not one of them.
pub(super) fn method(text: &str, name: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    let args = &Args::new(args);
    let width = || args.need(0, "width").map(|width| width.as_usize().unwrap_or(0).min(MAX_WIDTH));
    let padding = |width: usize| {
        let fill = args.text_or(1, "fillchar", " ");
        fill.repeat(width.saturating_sub(text.chars().count()))
    };
    Some(match name {
        "rsplit" => Ok(rsplit(text, args)),
        "zfill" => width().map(|width| {
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
            Value::from(format!("{sign}{}{digits}", "0".repeat(width.saturating_sub(text.chars().count()))))
        }),
        "ljust" => width().map(|width| Value::from(format!("{text}{}", padding(width)))),
        "rjust" => width().map(|width| Value::from(format!("{}{text}", padding(width)))),
        "partition" => args.need_text(0, "sep").map(|sep| match text.split_once(&sep) {
            Some((head, tail)) => tuple([head, &sep, tail]),
            None => tuple([text, "", ""]),
        }),
        "rpartition" => args.need_text(0, "sep").map(|sep| match text.rsplit_once(&sep) {
            Some((head, tail)) => tuple([head, &sep, tail]),
            None => tuple(["", "", text]),
        }),
        "removeprefix" => args.need_text(0, "prefix").map(|prefix| text.strip_prefix(&*prefix).unwrap_or(text).into()),
        "removesuffix" => args.need_text(0, "suffix").map(|suffix| text.strip_suffix(&*suffix).unwrap_or(text).into()),
        "index" => args.need_text(0, "sub").and_then(|sub| match text.find(&*sub) {
            Some(at) => Ok(Value::from(text[..at].chars().count())),
            None => Err(Error::new(ErrorKind::InvalidOperation, "substring not found")),
        }),
        _ => return None,
    })
}

fn tuple(parts: [&str; 3]) -> Value {
    Value::from(Tuple::from(parts.map(Value::from).to_vec()))
}

fn rsplit(text: &str, args: &Args<'_>) -> Value {
    let max = args.get(1, "maxsplit").and_then(|max| max.as_usize()).unwrap_or(usize::MAX - 1);
    let mut parts: Vec<Value> = match args.get(0, "sep").as_ref().and_then(Value::as_str) {
        Some(sep) if !sep.is_empty() => text.rsplitn(max.saturating_add(1), sep).map(Value::from).collect(),
        _ => text.split_whitespace().rev().map(Value::from).collect(),
    };
    parts.reverse();
    new_list(parts)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Python's `shlex.quote`.
fn shell_quote(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./-_".contains(c);
    if !text.is_empty() && text.chars().all(is_safe) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\"'\"'"))
}

/// A scalar as YAML writes it, text always in quotes.
fn yaml_encode(value: Value) -> Result<String, Error> {
    Ok(match from_jinja(&value)? {
        Core::Text(text) => yaml::double_quoted(&text),
        Core::List(_) | Core::Map(_) => {
            return Err(Error::new(ErrorKind::InvalidOperation, "yaml_encode only works with YAML scalar data"));
        }
        scalar => yaml::to_flow(&scalar),
    })
}

/// UUID version 5 in Salt's name space.
fn uuid(text: &str) -> String {
    let digest = Sha1::new().chain_update(UUID_SPACE).chain_update(text).finalize();
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    id[6] = (id[6] & 0x0f) | 0x50;
    id[8] = (id[8] & 0x3f) | 0x80;
    let text = hex(&id);
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}

fn base64_decode(text: &str) -> Result<Value, Error> {
    let decoded = base64::engine::general_purpose::STANDARD
        .decode(text.trim())
        .map_err(|err| Error::new(ErrorKind::InvalidOperation, format!("not base64: {err}")))?;
    Ok(match String::from_utf8(decoded) {
        Ok(text) => Value::from(text),
        Err(err) => Value::from_bytes(err.into_bytes()),
    })
}

fn to_bool(value: Value) -> bool {
    match value.kind() {
        ValueKind::Bool => value.is_true(),
        ValueKind::String => {
            value.as_str().is_some_and(|text| ["yes", "1", "true"].iter().any(|word| word.eq_ignore_ascii_case(text)))
        }
        ValueKind::Number if value.is_integer() => value > Value::from(0),
        ValueKind::Seq | ValueKind::Map => value.len().is_some_and(|len| len > 0),
        _ => false,
    }
}

fn to_num(value: Value) -> Value {
    let Some(text) = value.as_str() else { return value };
    let trimmed = text.trim();
    if let Ok(int) = trimmed.parse::<i64>() {
        return Value::from(int);
    }
    trimmed.parse::<f64>().map_or_else(|_| value.clone(), Value::from)
}

fn is_hex(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit())
}

fn to_snake_case(text: &str) -> String {
    let mut out = String::new();
    for (n, c) in text.chars().enumerate() {
        if c.is_uppercase() && n > 0 && !out.ends_with('_') {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

fn path_join(first: &str, more: &[Value]) -> String {
    let mut path = first.trim_end_matches('/').to_owned();
    for part in Args::new(more).positional() {
        path.push('/');
        path.push_str(part.to_string().trim_matches('/'));
    }
    path
}

/// Jinja2 has no `split` filter, but `minijinja` has, and templates may change the list.
fn split(text: &str, by: Option<&str>) -> Value {
    new_list(match by {
        Some(by) if !by.is_empty() => text.split(by).map(Value::from).collect(),
        _ => text.split_whitespace().map(Value::from).collect(),
    })
}
