//! Compiled templates per environment, and one rendering.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, ErrorKind, TemplateSource, UndefinedBehavior, Value};
use saltern_core::value::Map;

use super::{Scope, filters, prepare, value};
use crate::error::Error;
use crate::fileserver::FileRoots;

/// How much one rendering may do.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Instructions, includes and macros included.
    pub fuel: u64,
    /// Bytes written.
    pub output: usize,
    /// Bytes of one template.
    pub source: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { fuel: 10_000_000, output: 16 << 20, source: 4 << 20 }
    }
}

/// `jinja_sls_env`: what happens to white space around blocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Whitespace {
    /// `trim_blocks`: the newline after a block goes.
    pub trim_blocks: bool,
    /// `lstrip_blocks`: white space before a block goes.
    pub lstrip_blocks: bool,
}

/// Which file to render, and as what.
#[derive(Debug, Clone, Copy)]
pub struct Template<'a> {
    /// The environment whose roots it and its imports come from.
    pub env: &'a str,
    /// Its path below the root.
    pub path: &'a str,
    /// The SLS it is, with dots; empty for a top file.
    pub sls: &'a str,
}

/// Renders templates out of file roots, and keeps them compiled until their files change.
pub struct Engine {
    roots: Arc<FileRoots>,
    limits: Limits,
    whitespace: Whitespace,
    envs: Mutex<HashMap<String, Arc<Compiled>>>,
}

struct Compiled {
    environment: Environment<'static>,
    /// Templates loaded so far: the environment keeps replaced ones, so it is dropped when there were too many.
    loads: Arc<AtomicUsize>,
}

/// How many templates an environment may load before it is built anew.
const MAX_LOADS: usize = 20_000;

/// How many environments are kept compiled (a wildcard root could name any number).
const MAX_ENVS: usize = 64;

impl Engine {
    /// An engine over file roots.
    pub fn new(roots: Arc<FileRoots>, limits: Limits, whitespace: Whitespace) -> Self {
        Self { roots, limits, whitespace, envs: Mutex::default() }
    }

    /// The file roots it reads from.
    pub fn roots(&self) -> &Arc<FileRoots> {
        &self.roots
    }

    /// Renders a file; `defaults` are further variables, which give way to nothing.
    pub fn render(&self, template: Template<'_>, scope: &Scope, defaults: &Map) -> Result<String, Error> {
        let compiled = self.compiled(template.env);
        let failed = |err: minijinja::Error| self.error(template.path, &err);
        let parsed = compiled.environment.get_template(template.path).map_err(failed)?;
        let mut out = Bounded { text: Vec::new(), left: self.limits.output };
        let context = context(template, scope, defaults);
        match parsed.render_captured_to(context, &mut out) {
            Ok(_) => {}
            Err(_) if out.left == 0 => {
                let limit = format!("{} bytes of output", self.limits.output);
                return Err(Error::TemplateLimit { template: template.path.to_owned(), limit });
            }
            Err(err) => return Err(failed(err)),
        }
        // Jinja drops the newline at the end of a template; Salt puts it back.
        if parsed.source().ends_with('\n') {
            out.text.push(b'\n');
        }
        String::from_utf8(out.text).map_err(|_| Error::Encoding { path: template.path.to_owned() })
    }

    fn compiled(&self, env: &str) -> Arc<Compiled> {
        let mut envs = self.envs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = envs.get(env)
            && compiled.loads.load(Ordering::Relaxed) < MAX_LOADS
        {
            return Arc::clone(compiled);
        }
        if envs.len() >= MAX_ENVS {
            envs.clear();
        }
        let compiled = Arc::new(self.compile(env));
        envs.insert(env.to_owned(), Arc::clone(&compiled));
        compiled
    }

    fn compile(&self, env: &str) -> Compiled {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(self.limits.fuel));
        environment.set_debug(true);
        environment.set_unknown_method_callback(value::methods);
        environment.set_path_join_callback(|name, parent| Cow::Owned(join(name, parent)));
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(self.whitespace.trim_blocks).lstrip_blocks(self.whitespace.lstrip_blocks);
        if let Ok(syntax) = syntax.build() {
            environment.set_syntax(syntax);
        }
        filters::install(&mut environment);
        value::install(&mut environment);

        let loads = Arc::new(AtomicUsize::new(0));
        let (roots, env, counter, max) =
            (Arc::clone(&self.roots), env.to_owned(), Arc::clone(&loads), self.limits.source);
        environment.set_loader(move |name| load(&roots, &env, name, max, &counter));
        Compiled { environment, loads }
    }

    fn error(&self, path: &str, err: &minijinja::Error) -> Error {
        // The innermost cause says what happened; the outer ones only say that an include failed.
        let mut cause = err;
        while let Some(inner) = std::error::Error::source(cause).and_then(|source| source.downcast_ref()) {
            cause = inner;
        }
        if cause.kind() == ErrorKind::OutOfFuel {
            let limit = format!("{} instructions", self.limits.fuel);
            return Error::TemplateLimit { template: path.to_owned(), limit };
        }
        let problem = match (cause.kind(), cause.detail()) {
            (ErrorKind::UndefinedError, Some(detail)) => format!("Jinja variable {}", detail.replace('`', "'")),
            (ErrorKind::SyntaxError, Some(detail)) => format!("Jinja syntax error: {detail}"),
            (kind, Some(detail)) => format!("Jinja error: {kind}: {detail}"),
            (kind, None) => format!("Jinja error: {kind}"),
        };
        let template = cause.name().or(err.name()).unwrap_or(path).to_owned();
        Error::Jinja { problem, template, line: cause.line().or(err.line()).unwrap_or(0) }
    }
}

fn load(
    roots: &Arc<FileRoots>,
    env: &str,
    name: &str,
    max: usize,
    loads: &AtomicUsize,
) -> Result<Option<TemplateSource>, minijinja::Error> {
    let failed = |err: Error| minijinja::Error::new(ErrorKind::TemplateNotFound, err.to_string());
    // A name that climbs out of the root is not there, as every other name that is not there.
    let (content, stamp) = match roots.read(env, name, max) {
        Ok(Some(found)) => found,
        Ok(None) | Err(Error::Path { .. }) => return Ok(None),
        Err(err) => return Err(failed(err)),
    };
    let source = std::str::from_utf8(&content).map_err(|_| failed(Error::Encoding { path: name.to_owned() }))?;
    loads.fetch_add(1, Ordering::Relaxed);
    let (roots, env, name) = (Arc::clone(roots), env.to_owned(), name.to_owned());
    let is_current = move || matches!(roots.stamp(&env, &name), Ok(Some(now)) if now == stamp);
    Ok(Some(TemplateSource::new(prepare::prepare(source)).with_uptodate_check(is_current)))
}

/// The name of a template as one that imports it writes it: from the root, or from its own directory if it starts with a
/// dot.
fn join(name: &str, parent: &str) -> String {
    let name = name.strip_prefix("salt://").unwrap_or(name);
    if !matches!(name.split('/').next(), Some("." | "..")) {
        return name.to_owned();
    }
    let mut parts: Vec<&str> = parent.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            "." | "" => {}
            // Above the root there is nothing; the loader refuses the name.
            ".." if parts.pop().is_none() => return name.to_owned(),
            ".." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn context(template: Template<'_>, scope: &Scope, defaults: &Map) -> Value {
    let Template { env, path, sls } = template;
    // For a top file Salt knows the name of the file only, for an SLS the path below the root.
    let (dir, file) = match path.rsplit_once('/') {
        Some((dir, _)) if !sls.is_empty() => (dir, path),
        Some((_, file)) => ("", file),
        None => ("", path),
    };
    let mut variables: HashMap<String, Value> = HashMap::from([
        ("grains".to_owned(), scope.grains()),
        ("pillar".to_owned(), scope.pillar()),
        ("opts".to_owned(), scope.opts()),
        ("salt".to_owned(), scope.salt()),
        ("saltenv".to_owned(), env.into()),
        ("sls".to_owned(), sls.into()),
        ("tplpath".to_owned(), path.into()),
        ("tplfile".to_owned(), file.into()),
        ("tpldir".to_owned(), if dir.is_empty() { "." } else { dir }.into()),
        ("tpldot".to_owned(), dir.replace('/', ".").into()),
        ("slspath".to_owned(), dir.into()),
        ("slsdotpath".to_owned(), dir.replace('/', ".").into()),
        ("slscolonpath".to_owned(), dir.replace('/', ":").into()),
        ("sls_path".to_owned(), dir.replace('/', "_").into()),
    ]);
    for (key, value) in defaults {
        variables.insert(key.key_text().into_owned(), value::to_jinja(value));
    }
    Value::from(variables)
}

/// A buffer that fails when it is full.
struct Bounded {
    text: Vec<u8>,
    left: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.left {
            self.left = 0;
            return Err(io::Error::other("the output is too large"));
        }
        self.left -= bytes.len();
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_dots_are_relative_to_the_importer() {
        for (name, parent, expected) in [
            ("a/b.jinja", "x/y.sls", "a/b.jinja"),
            ("./b.jinja", "x/y.sls", "x/b.jinja"),
            ("../b.jinja", "x/y/z.sls", "x/b.jinja"),
            ("./b.jinja", "top.sls", "b.jinja"),
            ("salt://a/b", "x/y.sls", "a/b"),
            ("../../../etc/passwd", "x/y.sls", "../../../etc/passwd"),
        ] {
            assert_eq!(join(name, parent), expected);
        }
    }
}
