//! One command as it was asked for: read from a call, made ready, run, and its end told in Salt's way.

use super::super::accounts::{self, User};
use super::super::command::{Command, Finished, is_program};
use super::super::{Call, Failure, lookup, words};
use rustix::fs::{Access, access};
use saltern_core::target::{Glob, python_text};
use saltern_core::value::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The variables that Salt sets to `C`, so that output can be compared on every machine.
const LOCALE: [&str; 13] = [
    "LC_CTYPE",
    "LC_NUMERIC",
    "LC_TIME",
    "LC_COLLATE",
    "LC_MONETARY",
    "LC_MESSAGES",
    "LC_PAPER",
    "LC_NAME",
    "LC_ADDRESS",
    "LC_TELEPHONE",
    "LC_MEASUREMENT",
    "LC_IDENTIFICATION",
    "LANGUAGE",
];

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line for the shell
    Shell(String),
    /// A program and its arguments
    Words(Vec<String>),
}

/// A command that has ended.
pub(super) struct Ran {
    pub(super) pid: u32,
    /// The exit code as the return tells it
    pub(super) retcode: i64,
    /// The exit code of the job
    pub(super) job_retcode: i64,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// The parameter `cmd`: a line, or a list of words.
pub(super) fn line(call: &Call) -> Result<Line, Failure> {
    let text = match call.get("cmd") {
        Some(Value::List(items)) => {
            return Ok(Line::Words(items.iter().map(|item| python_text(item).into_owned()).collect()));
        }
        _ => call.text("cmd")?,
    };
    if !call.has_param("python_shell") || call.flag("python_shell", true) {
        return Ok(Line::Shell(text));
    }
    split(&text).map(Line::Words)
}

/// Words of a text as a shell would see them.
pub(super) fn split(text: &str) -> Result<Vec<String>, Failure> {
    words::split(text).ok_or_else(|| Failure::Exception("ValueError: No closing quotation".into()))
}

/// Runs a command to its end.
pub(super) async fn run(call: &Call, line: Line, is_merged: bool) -> Result<Ran, Failure> {
    let timeout = call.seconds("timeout")?.filter(|timeout| !timeout.is_zero());
    let limit = call.opt_text("timeout")?.unwrap_or_default();
    let shown = line.shown();
    let command = prepare(call, line).await?.timeout(timeout);
    let command = if is_merged { command.merge_streams() } else { command };
    let finished = command.run(&call.context).await?;
    if finished.timed_out {
        let stdout = format!("{shown} : Timed out after {limit} seconds");
        return Ok(Ran { pid: finished.pid, retcode: 1, job_retcode: 1, stdout, stderr: String::new() });
    }
    tell(call, finished)
}

/// Starts a command and leaves it alone; its number.
pub(super) async fn start(call: &Call, line: Line) -> Result<u32, Failure> {
    Ok(prepare(call, line).await?.detach()?)
}

fn tell(call: &Call, finished: Finished) -> Result<Ran, Failure> {
    let encoding = call.opt_text("output_encoding")?;
    let mut stdout = decode(&finished.stdout, encoding.as_deref());
    let mut stderr = decode(&finished.stderr, encoding.as_deref());
    if !call.has_param("rstrip") || call.flag("rstrip", true) {
        stdout.truncate(stdout.trim_end().len());
        stderr.truncate(stderr.trim_end().len());
    }
    let is_in = |name: &str, text: &str| items(call, name).iter().any(|item| text.contains(item.as_str()));
    let mut retcode = i64::from(finished.code);
    let wanted = items(call, "success_retcodes");
    let wanted: Result<Vec<i64>, _> = wanted.iter().map(|code| code.parse()).collect();
    let wanted = wanted.map_err(|_| Failure::Invocation("success_retcodes must be a list of integers".into()))?;
    if wanted.contains(&retcode) || is_in("success_stdout", &stdout) || is_in("success_stderr", &stderr) {
        retcode = 0;
    }
    if finished.dropped > 0 {
        stdout.push_str(&format!("\n[{} more bytes of output were not kept]", finished.dropped));
    }
    let is_ignored = call.has_param("ignore_retcode") && call.flag("ignore_retcode", false);
    let job_retcode = if is_ignored { 0 } else { retcode };
    Ok(Ran { pid: finished.pid, retcode, job_retcode, stdout, stderr })
}

/// Output as text: what cannot be read becomes a mark, as in stock Salt.
fn decode(bytes: &[u8], encoding: Option<&str>) -> String {
    let name = encoding.unwrap_or("utf-8").to_ascii_lowercase().replace('_', "-");
    match name.as_str() {
        "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1" => bytes.iter().copied().map(char::from).collect(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

async fn prepare(call: &Call, line: Line) -> Result<Command, Failure> {
    if given(call, "template").is_some() {
        return Err(Failure::Command("this minion does not render commands: 'template' cannot be used".into()));
    }
    let shell = shell(call)?;
    check_permitted(call, &line)?;
    let (user, group) = (call.opt_text("runas")?, call.opt_text("group")?);
    let looked_up = tokio::task::spawn_blocking(move || Identity::look_up(user.as_deref(), group.as_deref()));
    let identity = looked_up.await.map_err(|error| Failure::Exception(error.to_string()))??;
    let cwd = working_directory(call, identity.user.as_ref())?;
    let umask = umask(call)?;
    let environment = environment(call, identity.user.as_ref())?;
    let is_clean = call.has_param("clean_env") && call.flag("clean_env", false);
    let path = environment.get("PATH").cloned().or_else(|| (!is_clean).then(|| std::env::var("PATH").ok())?);
    let words = match &line {
        Line::Shell(text) => vec![shell, "-c".into(), text.clone()],
        Line::Words(words) => resolved(words, path.as_deref(), &cwd).ok_or_else(|| {
            let program = words.first().map_or("", String::as_str);
            let reason = format!("[Errno 2] No such file or directory: '{program}'");
            Failure::Command(unable(&line, &cwd, &reason))
        })?,
    };
    let words = identity.wrap(masked(words, umask)).map_err(|reason| Failure::Command(unable(&line, &cwd, &reason)))?;
    let mut command = Command::new(&words[0]).args(&words[1..]).with(|inner| {
        inner.current_dir(&cwd);
        if is_clean {
            inner.env_clear();
        }
        inner.env_remove("NOTIFY_SOCKET").envs(&environment);
        identity.apply(inner);
    });
    if let Some(stdin) = given(call, "stdin") {
        let text = python_text(stdin);
        let is_raw = call.has_param("stdin_raw_newlines") && call.flag("stdin_raw_newlines", false);
        command = command.stdin(if is_raw { text.into_owned() } else { text.replace("\\n", "\n") });
    }
    Ok(command)
}

impl Line {
    /// As Python would show it.
    fn shown(&self) -> String {
        match self {
            Self::Shell(text) => text.clone(),
            Self::Words(words) => python_text(&Value::list(words)).into_owned(),
        }
    }
}

fn unable(line: &Line, cwd: &Path, reason: &str) -> String {
    let cwd = cwd.display();
    format!("Unable to run command '{}' with the context '{{'cwd': '{cwd}'}}', reason: {reason}", line.shown())
}

/// As whom a command runs, where that is somebody else.
#[derive(Default)]
struct Identity {
    user: Option<User>,
    uid: Option<u32>,
    gid: Option<u32>,
    groups: Vec<u32>,
}

impl Identity {
    fn look_up(user: Option<&str>, group: Option<&str>) -> Result<Self, Failure> {
        let mut identity = Self::default();
        if let Some(name) = user {
            let user =
                accounts::user(name).ok_or_else(|| Failure::Command(format!("User '{name}' is not available")))?;
            if user.uid != rustix::process::geteuid().as_raw() {
                identity.groups = accounts::further_groups(&user);
                (identity.uid, identity.gid) = (Some(user.uid), Some(user.gid));
            }
            identity.user = Some(user);
        }
        if let Some(name) = group {
            let unknown = || Failure::Command(format!("Group '{name}' is not available"));
            identity.gid = Some(accounts::group_id(name).ok_or_else(unknown)?);
        }
        Ok(identity)
    }

    /// Further groups cannot be set between fork and exec without unsafe code: a small program of the system does it.
    fn wrap(&self, words: Vec<String>) -> Result<Vec<String>, String> {
        let (Some(uid), Some(gid)) = (self.uid, self.gid) else { return Ok(words) };
        if !rustix::process::geteuid().is_root() {
            return Err("[Errno 1] Operation not permitted".into());
        }
        if self.groups.is_empty() {
            return Ok(words);
        }
        let groups: Vec<String> = self.groups.iter().map(u32::to_string).collect();
        let first = [
            "setpriv".into(),
            format!("--reuid={uid}"),
            format!("--regid={gid}"),
            format!("--groups={}", groups.join(",")),
            "--".into(),
        ];
        Ok(first.into_iter().chain(words).collect())
    }

    fn apply(&self, command: &mut tokio::process::Command) {
        if !self.groups.is_empty() {
            return;
        }
        if let Some(gid) = self.gid {
            command.gid(gid);
        }
        if let Some(uid) = self.uid {
            command.uid(uid);
        }
    }
}

/// The umask belongs to the whole process, so a shell sets it for the program alone.
fn masked(words: Vec<String>, umask: Option<String>) -> Vec<String> {
    match umask {
        None => words,
        Some(umask) => {
            ["/bin/sh", "-c", r#"umask "$0" && exec "$@""#, &umask].map(String::from).into_iter().chain(words).collect()
        }
    }
}

fn umask(call: &Call) -> Result<Option<String>, Failure> {
    let Some(given) = given(call, "umask") else { return Ok(None) };
    let text = python_text(given);
    let digits = text.trim_start_matches('0');
    if digits.is_empty() {
        return Err(Failure::Command("Zero umask is not allowed.".into()));
    }
    match u32::from_str_radix(digits, 8) {
        Ok(mask) if mask <= 0o777 => Ok(Some(format!("{mask:04o}"))),
        _ => Err(Failure::Command(format!("Invalid umask: '{text}'"))),
    }
}

/// The first word as a path, found where the command would look for it.
fn resolved(words: &[String], path: Option<&str>, cwd: &Path) -> Option<Vec<String>> {
    let (program, arguments) = words.split_first()?;
    let found = if program.contains('/') {
        cwd.join(program)
    } else {
        let path = path.unwrap_or("/bin:/usr/bin");
        std::env::split_paths(path).map(|dir| dir.join(program)).find(|path| is_program(path))?
    };
    let found = found.exists().then_some(found)?.to_str()?.to_owned();
    Some(std::iter::once(found).chain(arguments.iter().cloned()).collect())
}

fn shell(call: &Call) -> Result<String, Failure> {
    let given = call.opt_text("shell")?;
    let shell = given.or_else(|| call.context.grains().get("shell")?.as_str().map(str::to_owned));
    let shell = shell.unwrap_or_else(|| "/bin/sh".into());
    if is_program(Path::new(&shell)) {
        Ok(shell)
    } else {
        Err(Failure::Command(format!("The shell {shell} is not available")))
    }
}

/// What the minion's configuration forbids or allows to be run.
fn check_permitted(call: &Call, line: &Line) -> Result<(), Failure> {
    let text = match line {
        Line::Shell(text) => text.clone(),
        Line::Words(words) => words.join(" "),
    };
    let list =
        |key: &str| lookup::find(&call.context.opts, key, lookup::COLON).and_then(Value::as_list).unwrap_or_default();
    let matches = |globs: &[Value]| globs.iter().any(|glob| Glob::new(&python_text(glob)).matches(&text));
    let allowed = list("cmd_whitelist_glob");
    if matches(list("cmd_blacklist_glob")) || !allowed.is_empty() && !matches(allowed) {
        return Err(Failure::Command(format!("The shell command \"{}\" is not permitted", line.shown())));
    }
    Ok(())
}

fn working_directory(call: &Call, user: Option<&User>) -> Result<PathBuf, Failure> {
    if let Some(cwd) = call.opt_text("cwd")?.filter(|cwd| !cwd.is_empty()) {
        let path = PathBuf::from(&cwd);
        if !path.is_absolute() || !path.is_dir() {
            let text = format!("Specified cwd '{cwd}' either not absolute or does not exist");
            return Err(Failure::Command(text));
        }
        return Ok(path);
    }
    let home = user.map(|user| user.home.clone()).or_else(|| std::env::var("HOME").ok()).map(PathBuf::from);
    let is_usable = |path: &PathBuf| path.is_absolute() && path.is_dir() && access(path, Access::READ_OK).is_ok();
    Ok(home.filter(is_usable).unwrap_or_else(|| "/".into()))
}

/// What is set over the environment of the minion.
fn environment(call: &Call, user: Option<&User>) -> Result<BTreeMap<String, String>, Failure> {
    let mut variables = BTreeMap::new();
    if let Some(user) = user {
        for (name, value) in
            [("HOME", &user.home), ("SHELL", &user.shell), ("USER", &user.name), ("LOGNAME", &user.name)]
        {
            variables.insert(name.to_owned(), value.clone());
        }
    }
    if !call.has_param("reset_system_locale") || call.flag("reset_system_locale", true) {
        variables.extend(LOCALE.map(|name| (name.to_owned(), "C".to_owned())));
    }
    let mut take = |map: &Map| {
        for (name, value) in map {
            let value = if value.is_nil() { String::new() } else { python_text(value).into_owned() };
            variables.insert(python_text(name).into_owned(), value);
        }
    };
    match given(call, "env") {
        Some(Value::Map(map)) => take(map),
        Some(Value::List(items)) => items.iter().filter_map(Value::as_map).for_each(take),
        _ => {}
    }
    if let Some(first) = given(call, "prepend_path") {
        let path = variables.get("PATH").cloned().or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
        variables.insert("PATH".into(), format!("{}:{path}", python_text(first)));
    }
    let is_bad =
        |(name, value): (&String, &String)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
    if variables.iter().any(is_bad) {
        return Err(Failure::Invocation("the environment has a name or a value that no program can be given".into()));
    }
    Ok(variables)
}

/// A parameter, where the function has it.
fn given<'c>(call: &'c Call, name: &str) -> Option<&'c Value> {
    if call.has_param(name) { call.get(name) } else { None }
}

/// A list, or words separated by commas.
fn items(call: &Call, name: &str) -> Vec<String> {
    match given(call, name) {
        None => Vec::new(),
        Some(Value::List(items)) => items.iter().map(|item| python_text(item).into_owned()).collect(),
        Some(value) => python_text(value).split(',').map(|item| item.trim().to_owned()).collect(),
    }
}
