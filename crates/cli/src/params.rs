//! Parameters of an action as they are typed: `NAME=VALUE`, read by what the action's type says they are.
//!
//! `action create` and everything that edits the steps of a chain share it.

use crate::arguments;
use crate::failure::Failure;
use saltern_core::action::types::{self, Kind};
use saltern_core::value::Map;

/// Reads parameters by what they are: the version `3.10` of a package is no number.
pub(crate) fn read(kind: &str, words: &[String]) -> Result<Map, Failure> {
    let known = types::find(kind).map(|kind| kind.params()).unwrap_or_default();
    let mut params = Map::new();
    for word in words {
        let Some((name, text)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Failure::usage(format!("{word:?} is not a parameter: write NAME=VALUE")));
        };
        let param = known.iter().find(|param| param.name == name);
        let value = match param.map(|param| param.kind) {
            Some(Kind::Body) => body(text)?.into(),
            Some(Kind::Text) => text.into(),
            // A list in YAML, or names with commas between them.
            Some(Kind::Names) if !text.starts_with('[') => text.into(),
            _ => arguments::value(text),
        };
        if params.get(name).is_some() {
            return Err(Failure::usage(format!("the parameter {name:?} is given twice")));
        }
        params.push(name, value);
    }
    Ok(params)
}

/// A text of many lines, or the file it is in.
fn body(text: &str) -> Result<String, Failure> {
    let Some(file) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    std::fs::read_to_string(file).map_err(|error| Failure::new(format!("cannot read {file}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::value::Value;

    #[test]
    fn parameters_are_read_by_what_they_are() {
        let one = read("package_install", &["packages=python=3.10".into(), "refresh=false".into()]).unwrap();
        assert_eq!(one.get("packages"), Some(&Value::from("python=3.10")));
        assert_eq!(one.get("refresh"), Some(&Value::from(false)));
        let list = read("package_install", &["packages=[vim, git]".into()]).unwrap();
        assert_eq!(list.get("packages"), Some(&Value::list(["vim", "git"])));
    }

    #[test]
    fn a_body_may_have_many_lines_or_come_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.sh");
        std::fs::write(&file, "echo 1\necho 2\n").unwrap();
        let body = |text: String| read("script", &[format!("body={text}")]).unwrap().get("body").cloned();
        assert_eq!(body("a\nb: 1".into()), Some("a\nb: 1".into()));
        assert_eq!(body(format!("@{}", file.display())), Some("echo 1\necho 2\n".into()));
        assert!(read("script", &["body=@/does/not/exist".into()]).is_err());
    }

    #[test]
    fn what_is_no_parameter_is_refused() {
        assert!(read("reboot", &["now".into()]).is_err());
        assert!(read("function", &["=x".into()]).is_err());
        assert!(read("function", &["fun=a.b".into(), "fun=c.d".into()]).is_err());
    }
}
