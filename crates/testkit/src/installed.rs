//! Where `make setup` puts things, and how to find them again.
//!
//! `xtask` writes what this module reads, and both use it, so that there is one idea of the cache's layout:
//! `salt-<version>/` is a Python environment, `salt-<line>.stamp` says which one stands for a release line; clients of the
//! HTTP API have `<package>-<version>/` and `<package>.stamp`; `oracles/` has the libraries that tests compare results with, and
//! `oracles.stamp` names them; `slapd/` is an unpacked OpenLDAP server.

use std::fmt;
use std::path::{Path, PathBuf};

/// A release line of Salt that minions in the field run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Line {
    /// 3006.x, the long-term line.
    L3006,
    /// 3007.x.
    L3007,
    /// 3008.x, the first with acknowledgement by start event.
    L3008,
}

impl Line {
    /// All supported lines, oldest first.
    pub const ALL: [Line; 3] = [Line::L3006, Line::L3007, Line::L3008];

    /// The line's number, as in its version: `3006`.
    pub fn number(self) -> u32 {
        match self {
            Line::L3006 => 3006,
            Line::L3007 => 3007,
            Line::L3008 => 3008,
        }
    }

    /// The release every test result refers to, unless it no longer installs.
    pub fn preferred_version(self) -> &'static str {
        match self {
            Line::L3006 => "3006.28",
            Line::L3007 => "3007.15",
            Line::L3008 => "3008.3",
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

/// An installed, unmodified Salt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salt {
    /// The line it belongs to.
    pub line: Line,
    /// The exact release, `3006.28`.
    pub version: String,
    /// Its Python environment.
    pub root: PathBuf,
}

impl Salt {
    /// The path of one of its programs: `salt-minion`, `salt-call`, `salt-master`, `salt`, `python`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.root.join("bin").join(name)
    }

    /// The Salt that stands for a line, or nothing when `make setup` has not installed one.
    pub fn installed(line: Line) -> Option<Salt> {
        Salt::read_stamp(&cache_dir(), line)
    }

    /// Remembers this Salt as the one that stands for its line.
    pub fn write_stamp(&self, cache: &Path) -> std::io::Result<()> {
        std::fs::write(stamp(cache, self.line), format!("{}\n{}\n", self.version, self.root.display()))
    }

    /// Reads what [`Salt::write_stamp`] wrote, if the environment it names is still there.
    pub fn read_stamp(cache: &Path, line: Line) -> Option<Salt> {
        let text = std::fs::read_to_string(stamp(cache, line)).ok()?;
        let mut lines = text.lines();
        let salt = Salt { line, version: lines.next()?.to_owned(), root: PathBuf::from(lines.next()?) };
        salt.program("salt-minion").exists().then_some(salt)
    }
}

/// A program that talks to the HTTP API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClientProgram {
    /// `pepper`, the command line that people use with salt-api.
    Pepper,
    /// `schemathesis`, which reads an OpenAPI document and sends what it allows and what it does not.
    Schemathesis,
}

impl ClientProgram {
    /// All of them.
    pub const ALL: [ClientProgram; 2] = [ClientProgram::Pepper, ClientProgram::Schemathesis];

    /// Its name as a package.
    pub fn package(self) -> &'static str {
        match self {
            ClientProgram::Pepper => "salt-pepper",
            ClientProgram::Schemathesis => "schemathesis",
        }
    }

    /// Its name as a program.
    pub fn program(self) -> &'static str {
        match self {
            ClientProgram::Pepper => "pepper",
            ClientProgram::Schemathesis => "schemathesis",
        }
    }

    /// The release every test result refers to, unless it no longer installs.
    pub fn preferred_version(self) -> &'static str {
        match self {
            ClientProgram::Pepper => "0.7.6",
            ClientProgram::Schemathesis => "4.32.5",
        }
    }

    /// The folder of a release's Python environment.
    pub fn folder(self, cache: &Path, version: &str) -> PathBuf {
        cache.join(format!("{}-{version}", self.package()))
    }

    fn stamp(self, cache: &Path) -> PathBuf {
        cache.join(format!("{}.stamp", self.package()))
    }
}

/// An installed client of the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Which one it is.
    pub program: ClientProgram,
    /// The exact release.
    pub version: String,
    /// Its Python environment.
    pub root: PathBuf,
}

impl Client {
    /// The path of its program.
    pub fn path(&self) -> PathBuf {
        self.root.join("bin").join(self.program.program())
    }

    /// The client `make setup` has installed, if it has.
    pub fn installed(program: ClientProgram) -> Option<Client> {
        Client::read_stamp(&cache_dir(), program)
    }

    /// Remembers this environment as the one that has the program.
    pub fn write_stamp(&self, cache: &Path) -> std::io::Result<()> {
        std::fs::write(self.program.stamp(cache), format!("{}\n{}\n", self.version, self.root.display()))
    }

    /// Reads what [`Client::write_stamp`] wrote, if the environment it names is still there.
    pub fn read_stamp(cache: &Path, program: ClientProgram) -> Option<Client> {
        let text = std::fs::read_to_string(program.stamp(cache)).ok()?;
        let mut lines = text.lines();
        let client = Client { program, version: lines.next()?.to_owned(), root: PathBuf::from(lines.next()?) };
        client.path().exists().then_some(client)
    }
}

/// A Python environment with libraries that do what ours does, for tests that compare the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oracles {
    /// The environment.
    pub root: PathBuf,
}

impl Oracles {
    /// What is in it. Exact releases: an answer that changes is to be looked at, not to turn up on a Monday. `tzdata` is the
    /// release of the zone database that `chrono-tz` carries.
    pub const REQUIREMENTS: [&str; 4] =
        ["croniter==6.2.4", "icalendar==6.3.2", "recurring-ical-events==3.8.2", "tzdata==2025.2"];

    /// Its Python.
    pub fn python(&self) -> PathBuf {
        self.root.join("bin/python")
    }

    /// The one in a cache, installed or not.
    pub fn of(cache: &Path) -> Oracles {
        Oracles { root: cache.join("oracles") }
    }

    /// The one `make setup` has installed, if it has.
    pub fn installed() -> Option<Oracles> {
        Oracles::read_stamp(&cache_dir())
    }

    /// Remembers that the environment has what is required.
    pub fn write_stamp(&self, cache: &Path) -> std::io::Result<()> {
        std::fs::write(Oracles::stamp(cache), Oracles::REQUIREMENTS.join("\n"))
    }

    /// The environment, if it is there and has exactly what is required today.
    pub fn read_stamp(cache: &Path) -> Option<Oracles> {
        let text = std::fs::read_to_string(Oracles::stamp(cache)).ok()?;
        let oracles = Oracles::of(cache);
        (text == Oracles::REQUIREMENTS.join("\n") && oracles.python().exists()).then_some(oracles)
    }

    fn stamp(cache: &Path) -> PathBuf {
        cache.join("oracles.stamp")
    }
}

/// What the names of everything in the cache begin with, apart from the lock.
pub const PREFIXES: [&str; 5] = ["salt-3", "salt-pepper", "schemathesis", "oracles", "slapd"];

/// The folder for what is slow to install: `$SALTERN_CACHE`, else `saltern` in the user's cache folder.
pub fn cache_dir() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("SALTERN_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("saltern")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/saltern")))
        .unwrap_or_else(|| std::env::temp_dir().join("saltern-cache"))
}

/// The folder of a release's Python environment.
pub fn salt_dir(cache: &Path, version: &str) -> PathBuf {
    cache.join(format!("salt-{version}"))
}

/// The file that says which environment stands for a line.
pub fn stamp(cache: &Path, line: Line) -> PathBuf {
    cache.join(format!("salt-{line}.stamp"))
}

/// The folder with PostgreSQL's server programs: on the path, or where Debian keeps them beside it.
pub fn postgres_programs() -> Option<PathBuf> {
    let on_path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    // Every directory is resolved first: an `initdb` linked into the path does not bring `postgres` with it.
    let on_path = on_path.unwrap_or_default().into_iter().filter_map(|dir| dir.join("initdb").canonicalize().ok());
    let on_path = on_path.filter_map(|program| program.parent().map(Path::to_owned));

    let mut debian: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    debian.sort_by_key(|(version, _)| std::cmp::Reverse(*version));

    on_path
        .chain(debian.into_iter().map(|(_, dir)| dir))
        .find(|dir| ["initdb", "postgres", "createdb", "pg_isready"].iter().all(|program| dir.join(program).is_file()))
}

/// OpenLDAP's server, unpacked or installed, and what it needs to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slapd {
    /// The program.
    pub program: PathBuf,
    /// The folder of its loadable parts, among them its database.
    pub modules: PathBuf,
    /// The folder of its schema files.
    pub schema: PathBuf,
    /// Folders of libraries that the system does not have; empty for an installed one.
    pub libraries: Vec<PathBuf>,
}

impl Slapd {
    /// The one that `make setup` unpacked, else the one of the system.
    pub fn installed() -> Option<Slapd> {
        Slapd::below(&slapd_dir(&cache_dir())).or_else(|| Slapd::below(Path::new("/")))
    }

    /// The one whose files are below a folder as they would be below `/`.
    pub fn below(root: &Path) -> Option<Slapd> {
        let is_system = root == Path::new("/");
        let parents = ["usr/lib", "lib"].map(|parent| root.join(parent));
        let folders = parents.iter().filter_map(|parent| std::fs::read_dir(parent).ok()).flatten().flatten();
        // Debian keeps libraries in a folder named after the machine's kind: `x86_64-linux-gnu`.
        let of_machine = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().contains("-linux-");
        let slapd = Slapd {
            program: root.join("usr/sbin/slapd"),
            modules: root.join("usr/lib/ldap"),
            schema: root.join("etc/ldap/schema"),
            libraries: folders.filter(|entry| !is_system && of_machine(entry)).map(|entry| entry.path()).collect(),
        };
        (slapd.program.is_file() && slapd.modules.is_dir() && slapd.schema.is_dir()).then_some(slapd)
    }
}

/// The folder into which OpenLDAP's server is unpacked.
pub fn slapd_dir(cache: &Path) -> PathBuf {
    cache.join("slapd")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache_with_minion(name: &str) -> PathBuf {
        let cache = std::env::temp_dir().join(format!("saltern-installed-{name}-{}", std::process::id()));
        let bin = salt_dir(&cache, "3006.99").join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("salt-minion"), "").unwrap();
        cache
    }

    #[test]
    fn a_stamp_is_read_back_as_it_was_written() {
        let cache = cache_with_minion("round-trip");
        let salt = Salt { line: Line::L3006, version: "3006.99".into(), root: salt_dir(&cache, "3006.99") };
        salt.write_stamp(&cache).unwrap();
        assert_eq!(Salt::read_stamp(&cache, Line::L3006), Some(salt));
        assert_eq!(Salt::read_stamp(&cache, Line::L3007), None);
        std::fs::remove_dir_all(cache).unwrap();
    }

    #[test]
    fn a_stamp_for_a_removed_environment_counts_as_none() {
        let cache = cache_with_minion("removed");
        let salt = Salt { line: Line::L3006, version: "3006.99".into(), root: salt_dir(&cache, "3006.99") };
        salt.write_stamp(&cache).unwrap();
        std::fs::remove_dir_all(&salt.root).unwrap();
        assert_eq!(Salt::read_stamp(&cache, Line::L3006), None);
        std::fs::remove_dir_all(cache).unwrap();
    }

    #[test]
    fn a_client_is_found_by_its_stamp_as_long_as_its_program_is_there() {
        let cache = std::env::temp_dir().join(format!("saltern-installed-client-{}", std::process::id()));
        let root = ClientProgram::Pepper.folder(&cache, "0.7.6");
        let client = Client { program: ClientProgram::Pepper, version: "0.7.6".into(), root };
        std::fs::create_dir_all(client.root.join("bin")).unwrap();
        std::fs::write(client.path(), "").unwrap();
        client.write_stamp(&cache).unwrap();
        assert_eq!(Client::read_stamp(&cache, ClientProgram::Pepper), Some(client.clone()));
        assert_eq!(Client::read_stamp(&cache, ClientProgram::Schemathesis), None);
        std::fs::remove_file(client.path()).unwrap();
        assert_eq!(Client::read_stamp(&cache, ClientProgram::Pepper), None);
        std::fs::remove_dir_all(cache).unwrap();
    }

    #[test]
    fn oracles_with_other_requirements_count_as_none() {
        let cache = std::env::temp_dir().join(format!("saltern-installed-oracles-{}", std::process::id()));
        let oracles = Oracles::of(&cache);
        std::fs::create_dir_all(oracles.root.join("bin")).unwrap();
        std::fs::write(oracles.python(), "").unwrap();
        oracles.write_stamp(&cache).unwrap();
        assert_eq!(Oracles::read_stamp(&cache), Some(oracles));
        std::fs::write(Oracles::stamp(&cache), "croniter==1.0").unwrap();
        assert_eq!(Oracles::read_stamp(&cache), None);
        std::fs::remove_dir_all(cache).unwrap();
    }

    #[test]
    fn everything_in_the_cache_is_recognised_by_its_name() {
        let cache = Path::new("");
        let salts =
            Line::ALL.into_iter().flat_map(|line| [salt_dir(cache, line.preferred_version()), stamp(cache, line)]);
        let clients = ClientProgram::ALL.into_iter();
        let clients = clients.flat_map(|client| [client.folder(cache, "1"), client.stamp(cache)]);
        let oracles = [Oracles::of(cache).root, Oracles::stamp(cache)];
        for path in salts.chain(clients).chain(oracles).chain([slapd_dir(cache)]) {
            let name = path.display().to_string();
            assert!(PREFIXES.iter().any(|prefix| name.starts_with(prefix)), "{name}");
        }
    }

    #[test]
    fn every_preferred_version_belongs_to_its_line() {
        for line in Line::ALL {
            assert!(line.preferred_version().starts_with(&format!("{line}.")));
        }
    }
}
