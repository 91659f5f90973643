//! Scripts and pieces of code: brought to a file that only its user can read, run, and removed.

use super::super::call::Answer;
use super::super::{Call, Failure, Outcome, accounts, cp};
use super::request::{Line, Ran, run, split, start};
use saltern_core::target::python_text;
use saltern_core::value::{Map, Value};
use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Fetches a script and runs it.
pub(super) async fn script(call: &Call) -> Answer {
    if call.get("template").is_some() {
        return Err(Failure::Command("this minion does not render scripts: 'template' cannot be used".into()));
    }
    let source = call.text("source")?;
    let cached = cp::cache(&call.context, &source, &cp::saltenv(call)?).await;
    let Some(cached) = cached.ok().flatten().filter(|path| path.is_file()) else { return Ok(not_cached()) };
    let bytes = tokio::fs::read(&cached).await?;
    let ending =
        Path::new(&source).extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    let file = place(call, bytes, ending, 0o500).await?;
    let line = Line::Words(std::iter::once(file.text()).chain(arguments(call)?).collect());
    if call.has_param("bg") && call.flag("bg", false) {
        let pid = start(call, line).await?;
        // Nobody knows when it will have been read.
        file.keep();
        return Ok(Ran { pid, retcode: 0, job_retcode: 0, stdout: String::new(), stderr: String::new() }.into_map(call));
    }
    Ok(run(call, line, false).await?.into_map(call))
}

/// Runs a piece of code with an interpreter.
pub(super) async fn exec_code(call: &Call) -> Result<Ran, Failure> {
    let mut code = call.text("code")?.into_bytes();
    code.push(b'\n');
    let file = place(call, code, String::new(), 0o400).await?;
    let first = [call.text("lang")?, file.text()];
    // Unlike a script's, one text is one argument.
    let rest = match call.get("args") {
        Some(Value::List(items)) => items.iter().map(|item| python_text(item).into_owned()).collect(),
        Some(value) => vec![python_text(value).into_owned()],
        None => Vec::new(),
    };
    run(call, Line::Words(first.into_iter().chain(rest).collect()), false).await
}

fn arguments(call: &Call) -> Result<Vec<String>, Failure> {
    match call.get("args") {
        None => Ok(Vec::new()),
        Some(Value::List(items)) => Ok(items.iter().map(|item| python_text(item).into_owned()).collect()),
        Some(value) => split(&python_text(value)),
    }
}

/// What stock Salt says when there is no such script. That the job failed is for us to add.
fn not_cached() -> Outcome {
    let mut map = Map::with_capacity(5);
    map.push("pid", 0);
    map.push("retcode", 1);
    map.push("stdout", "");
    map.push("stderr", "");
    map.push("cache_error", true);
    Outcome { value: Value::Map(map), retcode: 1 }
}

/// A file that is gone when its script has ended.
struct Temporary(Option<PathBuf>);

impl Temporary {
    fn text(&self) -> String {
        self.0.as_deref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Writes a file for the user who will run it.
async fn place(call: &Call, bytes: Vec<u8>, ending: String, mode: u32) -> Result<Temporary, Failure> {
    let folder = call.opt_text("cwd")?.map_or_else(std::env::temp_dir, PathBuf::from);
    let user = call.opt_text("runas")?;
    let placed = tokio::task::spawn_blocking(move || {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| Failure::Exception(error.to_string()))?;
        let path = folder.join(format!("__salt.tmp.{:016x}{ending}", u64::from_le_bytes(random)));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let temporary = Temporary(Some(path));
        file.write_all(&bytes)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        if let Some(name) = user {
            let user =
                accounts::user(&name).ok_or_else(|| Failure::Command(format!("User '{name}' is not available")))?;
            std::os::unix::fs::fchown(&file, Some(user.uid), None)?;
        }
        Ok(temporary)
    });
    placed.await.map_err(|error| Failure::Exception(error.to_string()))?
}
