//! One SLS file through its renderer pipe into data.
//!
//! The pipe stands in the first line (`#!jinja|yaml`) or comes from the configuration. Files without Jinja in them are
//! parsed once and kept until they change, so that pillar for a thousand minions does not parse a thousand times.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use saltern_core::value::{Map, Value};

use crate::error::{Error, Position};
use crate::fileserver::Stamp;
use crate::jinja::{Engine, Scope, Template};
use crate::yaml;

/// What turns the rendered text into data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Salt's YAML.
    Yaml,
    /// JSON.
    Json,
}

/// A renderer pipe this server has: perhaps Jinja, then a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pipe {
    /// Whether Jinja runs first.
    pub jinja: bool,
    /// What its output, or the file, is read as.
    pub format: Format,
}

impl Pipe {
    /// The pipe of that name, such as `jinja|yaml`.
    pub fn parse(pipe: &str) -> Result<Self, Error> {
        let pipe = pipe.trim();
        // Names from before there were pipes.
        let pipe = match pipe {
            "yaml_jinja" => "jinja|yaml",
            "json_jinja" => "jinja|json",
            other => other,
        };
        let mut names = Vec::new();
        for part in pipe.split('|') {
            let name = part.split_whitespace().next().unwrap_or_default();
            if !matches!(name, "jinja" | "yaml" | "json") {
                return Err(Error::Renderer { name: name.to_owned() });
            }
            names.push(name);
        }
        let (jinja, format) = match names[..] {
            ["yaml"] => (false, Format::Yaml),
            ["json"] => (false, Format::Json),
            ["jinja", "yaml"] => (true, Format::Yaml),
            ["jinja", "json"] => (true, Format::Json),
            _ => return Err(Error::RendererPipe { pipe: pipe.to_owned() }),
        };
        Ok(Self { jinja, format })
    }

    /// The pipe a file asks for in its first line, or this one.
    fn of_source(source: &str, default: Self) -> Result<Self, Error> {
        let first = source.lines().next().unwrap_or_default();
        match first.strip_prefix("#!") {
            Some(pipe) if !pipe.starts_with('/') => Self::parse(pipe),
            _ => Ok(default),
        }
    }
}

/// Renders SLS files to data.
pub struct Renderer {
    engine: Engine,
    default: Pipe,
    known: Mutex<HashMap<(String, String), (Stamp, Known)>>,
}

/// What is remembered of a file.
#[derive(Clone)]
enum Known {
    /// Its data, which does not depend on the minion.
    Data(Arc<Value>),
    /// That it has to be rendered, and how it is read then.
    Template(Format),
    /// Why it cannot be rendered for anybody.
    Broken(Error),
}

/// How many files are remembered before the memory starts anew.
const MAX_KNOWN: usize = 50_000;

/// The largest file that is read.
const MAX_SOURCE: usize = 4 << 20;

impl Renderer {
    /// A renderer whose files are read with `default` (`jinja|yaml`) unless they say otherwise.
    pub fn new(engine: Engine, default: &str) -> Result<Self, Error> {
        Ok(Self { engine, default: Pipe::parse(default)?, known: Mutex::default() })
    }

    /// The engine that runs the templates.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The data of a file, or nothing if there is no such file. `defaults` are further variables for Jinja.
    pub fn render(&self, template: Template<'_>, scope: &Scope, defaults: &Map) -> Result<Option<Value>, Error> {
        let Some(known) = self.known(template)? else { return Ok(None) };
        match known {
            Known::Data(data) => Ok(Some((*data).clone())),
            Known::Broken(err) => Err(err),
            Known::Template(format) => {
                let text = self.engine.render(template, scope, defaults)?;
                parse(&text, format).map(Some)
            }
        }
    }

    fn known(&self, Template { env, path, .. }: Template<'_>) -> Result<Option<Known>, Error> {
        let roots = self.engine.roots();
        let Some(stamp) = roots.stamp(env, path)? else { return Ok(None) };
        let key = (env.to_owned(), path.to_owned());
        if let Some((known_stamp, known)) = self.lock().get(&key)
            && *known_stamp == stamp
        {
            return Ok(Some(known.clone()));
        }
        let Some((content, stamp)) = roots.read(env, path, MAX_SOURCE)? else { return Ok(None) };
        let known = std::str::from_utf8(&content)
            .map_err(|_| Error::Encoding { path: path.to_owned() })
            .and_then(|source| self.look_at(source))
            .unwrap_or_else(Known::Broken);
        let mut memory = self.lock();
        if memory.len() >= MAX_KNOWN {
            memory.clear();
        }
        memory.insert(key, (stamp, known.clone()));
        Ok(Some(known))
    }

    fn look_at(&self, source: &str) -> Result<Known, Error> {
        if source.trim().is_empty() {
            return Ok(Known::Data(Arc::new(Value::Map(Map::new()))));
        }
        let pipe = Pipe::of_source(source, self.default)?;
        let has_jinja = source.contains("{{") || source.contains("{%") || source.contains("{#");
        if pipe.jinja && has_jinja {
            return Ok(Known::Template(pipe.format));
        }
        parse(source, pipe.format).map(|data| Known::Data(Arc::new(data)))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), (Stamp, Known)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rendered text as data; nothing at all is an empty map, as in Salt.
fn parse(text: &str, format: Format) -> Result<Value, Error> {
    let data = match format {
        Format::Yaml => yaml::load(text)?,
        Format::Json => json(text)?,
    };
    Ok(if data.is_truthy() { data } else { Value::Map(Map::new()) })
}

fn json(text: &str) -> Result<Value, Error> {
    let body = match text.strip_prefix("#!") {
        Some(rest) => rest.split_once('\n').map_or("", |(_, body)| body),
        None => text,
    };
    if body.trim().is_empty() {
        return Ok(Value::Nil);
    }
    let lines_before = text[..text.len() - body.len()].matches('\n').count();
    let failed = |err: serde_json::Error| {
        let at = Position { line: err.line() + lines_before, column: err.column() };
        let problem = err.to_string();
        let problem = problem.rsplit_once(" at line").map_or(problem.as_str(), |(problem, _)| problem).to_owned();
        Error::Json { problem, at }
    };
    // By way of a JSON tree, in which the last of several equal keys wins, as in Python.
    let tree: serde_json::Value = serde_json::from_str(body).map_err(failed)?;
    serde_json::from_value(tree).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_are_known_or_named() {
        assert_eq!(Pipe::parse("jinja | yaml").unwrap(), Pipe { jinja: true, format: Format::Yaml });
        assert_eq!(Pipe::parse("yaml_jinja").unwrap(), Pipe { jinja: true, format: Format::Yaml });
        assert_eq!(Pipe::parse("json").unwrap(), Pipe { jinja: false, format: Format::Json });
        for (pipe, name) in [("py", "py"), ("mako|yaml", "mako"), ("jinja|yaml|gpg", "gpg"), ("", "")] {
            assert_eq!(Pipe::parse(pipe), Err(Error::Renderer { name: name.to_owned() }));
        }
        assert!(matches!(Pipe::parse("jinja"), Err(Error::RendererPipe { .. })));
    }

    #[test]
    fn json_errors_name_the_line_of_the_file() {
        let err = parse("#!json\n{\"a\":\n  x}", Format::Json).unwrap_err();
        assert_eq!(err.to_string(), "not JSON: expected value at line 3, column 3");
        assert_eq!(parse("{\"a\": 1, \"a\": 2}", Format::Json).unwrap(), Value::map([("a", 2)]));
    }
}
