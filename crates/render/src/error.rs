//! What can go wrong while reading Salt's languages.

use std::fmt;

/// The error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Text that is not the YAML Salt accepts.
    #[error("{}{problem} at {at}", while_part(context))]
    Yaml {
        /// What is wrong, in the words of Salt's loader where it has some.
        problem: String,
        /// Where.
        at: Position,
        /// What was being read, and where that began.
        context: Option<(&'static str, Position)>,
    },
    /// Text that is not JSON.
    #[error("not JSON: {problem} at {at}")]
    Json {
        /// What is wrong.
        problem: String,
        /// Where.
        at: Position,
    },
    /// A template that could not be read or run.
    #[error("{problem} in {template}, line {line}")]
    Jinja {
        /// What is wrong.
        problem: String,
        /// The template, relative to its root.
        template: String,
        /// The line in it; 0 if none is known.
        line: usize,
    },
    /// A template that did more work, or wrote more, than is allowed.
    #[error("{template} exceeds the limit of {limit}")]
    TemplateLimit {
        /// The template, relative to its root.
        template: String,
        /// Which limit.
        limit: String,
    },
    /// A renderer this server does not have.
    #[error("the renderer '{name}' is not available (available: jinja, yaml, json)")]
    Renderer {
        /// Its name in the pipe.
        name: String,
    },
    /// A renderer pipe whose parts do not fit together.
    #[error("the renderer pipe '{pipe}' does not end in data")]
    RendererPipe {
        /// The pipe.
        pipe: String,
    },
    /// A file that is not UTF-8.
    #[error("{path} is not UTF-8 text")]
    Encoding {
        /// The file, relative to its root.
        path: String,
    },
    /// A path or an environment name that may not be used, and why.
    #[error("refused path {path:?}: {reason}")]
    Path {
        /// The path as it was asked for.
        path: String,
        /// Why not.
        reason: &'static str,
    },
    /// The file system failed.
    #[error("{path}: {problem}")]
    Io {
        /// The path, relative to its root.
        path: String,
        /// What the system said.
        problem: String,
    },
    /// An environment with more files than is allowed.
    #[error("environment '{env}' has more than {limit} entries or is nested too deeply")]
    TooManyFiles {
        /// The environment.
        env: String,
        /// The limit.
        limit: usize,
    },
    /// A setting that cannot be used.
    #[error("{setting}: {problem}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Top data of a form Salt does not have.
    #[error("{0}")]
    Top(String),
}

/// A place in a text, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

fn while_part(context: &Option<(&'static str, Position)>) -> String {
    context.as_ref().map_or_else(String::new, |(what, at)| format!("{what} at {at}: "))
}
