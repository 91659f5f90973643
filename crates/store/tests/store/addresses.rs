//! Databases that cannot be opened: one sentence that says where and why, and never the password.

use crate::database::Database;
use saltern_store::{Location, Options, Store};
use saltern_testkit::{ports, postgres::Cluster, scratch::Scratch};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const SECRET: &str = "hunter2";

#[tokio::test]
async fn a_port_where_nobody_listens() {
    let port = ports::free();
    let text = refusal(&format!("postgres://salt:{SECRET}@127.0.0.1:{port}/saltern")).await;
    let place = format!("cannot open the database at postgres://salt@127.0.0.1:{port}/saltern: ");
    assert_eq!(text, place + "error connecting to server: Connection refused (os error 111)");
}

#[tokio::test]
async fn a_host_that_has_no_address() {
    let text = refusal(&format!("postgres://salt:{SECRET}@db.invalid/saltern")).await;
    let place = "cannot open the database at postgres://salt@db.invalid/saltern: error connecting to server: ";
    assert!(text.starts_with(place), "{text}");
}

#[tokio::test]
async fn a_server_that_says_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let text = refusal(&format!("postgres://salt:{SECRET}@{address}/saltern?connect_timeout=1")).await;
    assert_eq!(text, format!("cannot open the database at postgres://salt@{address}/saltern: it does not answer"));
}

#[tokio::test]
async fn a_password_in_the_parameters_is_as_secret() {
    let port = ports::free();
    let text = refusal(&format!("postgres://salt@127.0.0.1:{port}/saltern?password={SECRET}")).await;
    assert!(text.starts_with(&format!("cannot open the database at postgres://salt@127.0.0.1:{port}/saltern: ")));
}

#[tokio::test]
async fn a_wrong_password() {
    let Some(cluster) = Cluster::start() else { return };
    let admin = Database::at(&cluster.fresh_database()).connect().await;
    admin.batch_execute("CREATE ROLE guarded LOGIN PASSWORD 'right'").await.unwrap();
    // The cluster trusts everybody; from now on it asks this one.
    let hba: String = admin.query_one("SHOW hba_file", &[]).await.unwrap().get(0);
    let rules = std::fs::read_to_string(&hba).unwrap();
    std::fs::write(&hba, format!("host all guarded 127.0.0.1/32 scram-sha-256\n{rules}")).unwrap();
    admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();

    let place = format!("postgres://guarded@127.0.0.1:{}/postgres", cluster.port());
    let wanted = format!("cannot open the database at {place}: password authentication failed for user \"guarded\"");
    let with_password = place.replace("guarded@", &format!("guarded:{SECRET}@"));
    // The reload is not waited for by the server: until then it lets us in, and refuses us the schema.
    saltern_testkit::wait::until_ok("the password to matter", std::time::Duration::from_secs(20), async || {
        let text = refusal(&with_password).await;
        if text == wanted { Ok(()) } else { Err(text) }
    })
    .await;
}

#[tokio::test]
async fn a_user_who_may_not_make_tables() {
    let Some(cluster) = Cluster::start() else { return };
    let url = cluster.fresh_database();
    let admin = Database::at(&url).connect().await;
    admin.batch_execute("CREATE ROLE reader LOGIN").await.unwrap();
    let url = url.replace("saltern@", "reader@");
    let wanted = format!("cannot open the database at {url}: permission denied for schema public (42501)");
    assert_eq!(refusal(&url).await, wanted);
}

#[tokio::test]
async fn a_database_that_does_not_exist() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.url("nowhere");
    let text = refusal(&url).await;
    assert_eq!(text, format!("cannot open the database at {url}: database \"nowhere\" does not exist"));
}

#[tokio::test]
async fn an_address_with_an_unknown_parameter() {
    let text = refusal(&format!("postgres://salt:{SECRET}@127.0.0.1/saltern?colour=blue")).await;
    let place = "cannot open the database at postgres://salt@127.0.0.1/saltern: ";
    assert_eq!(text, format!("{place}invalid connection string: unknown option `colour`"));
}

#[tokio::test]
async fn a_file_that_is_no_database() {
    let folder = Scratch::new("open");
    let file = folder.write("notes.txt", "dear diary, this is not a database, however long it may become".repeat(100));
    let text = refusal(file.to_str().unwrap()).await;
    assert_eq!(text, format!("cannot open the database at {}: file is not a database", file.display()));
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("dear diary"), "and it is left alone");
}

#[tokio::test]
async fn a_folder_instead_of_a_file() {
    let folder = Scratch::new("open");
    let text = refusal(folder.path().to_str().unwrap()).await;
    assert_eq!(text, format!("cannot open the database at {}: it is a directory", folder.path().display()));
}

#[tokio::test]
async fn a_folder_that_does_not_exist() {
    let folder = Scratch::new("open");
    let (missing, file) = (folder.path().join("no"), folder.path().join("no/saltern.db"));
    let text = refusal(file.to_str().unwrap()).await;
    let wanted = format!("cannot open the database at {}: {} is not a directory", file.display(), missing.display());
    assert_eq!(text, wanted);
}

#[tokio::test]
async fn a_folder_that_must_not_be_written_to() {
    let folder = Scratch::new("open");
    let Some(_unwritable) = Unwritable::make(folder.path()) else { return };
    let file = folder.path().join("saltern.db");
    assert_unwritable(&file, &refusal(file.to_str().unwrap()).await);
}

#[tokio::test]
async fn a_file_that_must_not_be_written_to() {
    let database = Database::sqlite();
    database.open().await.close().await;
    let Location::Sqlite(path) = &database.location else { panic!("a SQLite database has a file") };
    let Some(_unwritable) = Unwritable::make(path) else { return };
    assert_unwritable(path, &refusal(path.to_str().unwrap()).await);
}

fn assert_unwritable(path: &Path, said: &str) {
    let place = format!("cannot open the database at {}: ", path.display());
    let reason = said.strip_prefix(&place).unwrap_or_default();
    // What anybody is told, and what root is told.
    let wanted = ["Permission denied (os error 13)", "Operation not permitted (os error 1)"];
    assert!(wanted.contains(&reason), "{said}");
}

/// A file or folder that cannot be written to; as it was on drop.
struct Unwritable<'p>(&'p Path);

impl<'p> Unwritable<'p> {
    /// Permissions do not stop root, who needs an attribute; nothing where the file system does not know it.
    fn make(path: &'p Path) -> Option<Self> {
        let unwritable = Self(path);
        set_mode(path, 0o555);
        let probe = if path.is_dir() { path.join("probe") } else { path.to_owned() };
        let is_writable = || std::fs::OpenOptions::new().append(true).create(true).open(&probe).is_ok();
        if is_writable() {
            let _ = std::fs::remove_file(path.join("probe"));
            if !chattr("+i", path) {
                let _ = writeln!(std::io::stderr(), "\nSKIPPED without `chattr +i`, which stops root\n");
                return None;
            }
        }
        Some(unwritable)
    }
}

impl Drop for Unwritable<'_> {
    fn drop(&mut self) {
        chattr("-i", self.0);
        set_mode(self.0, 0o755);
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn chattr(change: &str, path: &Path) -> bool {
    let quiet = std::process::Stdio::null;
    let status = std::process::Command::new("chattr").arg(change).arg(path).stdout(quiet()).stderr(quiet()).status();
    status.is_ok_and(|status| status.success())
}

/// What is said when this cannot be opened.
async fn refusal(address: &str) -> String {
    let location = Location::parse(address).unwrap();
    let error = Store::open(&location, &Options::default()).await.err();
    let Some(error) = error else { panic!("{location:?} was opened") };
    let said = format!("{error}");
    assert!(!format!("{said} {error:?} {location:?}").contains(SECRET), "{said}");
    assert!(!said.contains('\n'), "one sentence: {said}");
    said
}
