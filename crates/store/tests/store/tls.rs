//! Encrypted connections to PostgreSQL: as much trust as the address asks for, and no more.
//!
//! The certificates in `tests/tls` are good for a hundred years and for nothing else: `server.crt` is for 127.0.0.1 and
//! signed by `authority.crt`; `stranger.crt` has signed nothing.

use crate::database::Database;
use crate::fixtures::{all_tags, event};
use saltern_store::{Location, Options, Store};
use saltern_testkit::postgres::Cluster;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

#[tokio::test]
async fn require_encrypts_whoever_the_server_is() {
    let Some(url) = encrypted_database().await else { return };
    assert!(is_encrypted(&format!("{url}?sslmode=require")).await);
}

#[tokio::test]
async fn what_can_be_encrypted_is() {
    let Some(url) = encrypted_database().await else { return };
    assert!(is_encrypted(&url).await);
    assert!(!is_encrypted(&format!("{url}?sslmode=disable")).await);
}

#[tokio::test]
async fn a_server_that_cannot_encrypt_is_used_only_if_need_be() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh_database();
    assert!(!is_encrypted(&url).await);
    let refused = refusal(&format!("{url}?sslmode=require")).await;
    let wanted =
        format!("cannot open the database at {url}: error performing TLS handshake: server does not support TLS");
    assert_eq!(refused, wanted);
}

#[tokio::test]
async fn a_server_with_a_certificate_of_the_named_authority_is_believed() {
    let Some(url) = encrypted_database().await else { return };
    let authority = certificate("authority.crt");
    for mode in ["require", "verify-ca", "verify-full"] {
        assert!(is_encrypted(&format!("{url}?sslmode={mode}&sslrootcert={}", authority.display())).await);
    }
}

#[tokio::test]
async fn a_server_that_another_authority_vouches_for_is_refused() {
    let Some(url) = encrypted_database().await else { return };
    let stranger = certificate("stranger.crt");
    for mode in ["require", "verify-ca", "verify-full"] {
        let refused = refusal(&format!("{url}?sslmode={mode}&sslrootcert={}", stranger.display())).await;
        let reason = "error performing TLS handshake: invalid peer certificate: ";
        assert!(refused.starts_with(&format!("cannot open the database at {url}: {reason}")), "{refused}");
    }
}

#[tokio::test]
async fn the_servers_name_matters_to_verify_full_only() {
    let Some(url) = encrypted_database().await else { return };
    let by_name = url.replace("127.0.0.1", "localhost");
    let authority = certificate("authority.crt");
    let address = |mode| format!("{by_name}?sslmode={mode}&sslrootcert={}", authority.display());
    assert!(is_encrypted(&address("verify-ca")).await);
    let refused = refusal(&address("verify-full")).await;
    assert!(refused.contains("invalid peer certificate: certificate not valid for name \"localhost\""), "{refused}");
}

#[tokio::test]
async fn an_authority_that_cannot_be_read_is_named() {
    let refused = refusal("postgres://127.0.0.1/saltern?sslmode=verify-full&sslrootcert=/no/such%20file.crt").await;
    let reason = "cannot read the certificates in sslrootcert /no/such file.crt: ";
    let wanted = format!("cannot open the database at postgres://127.0.0.1/saltern: {reason}");
    assert!(refused.starts_with(&wanted), "{refused}");
}

#[tokio::test]
async fn a_mode_that_does_not_exist_is_refused() {
    let refused = refusal("postgres://127.0.0.1/saltern?sslmode=maybe").await;
    let reason = "invalid connection string: invalid value for option `sslmode`";
    assert_eq!(refused, format!("cannot open the database at postgres://127.0.0.1/saltern: {reason}"));
}

/// A new database in a cluster that can encrypt.
async fn encrypted_database() -> Option<String> {
    static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(Cluster::start).as_ref()?;
    let url = cluster.fresh_database();
    let admin = Database::at(&format!("{url}?sslmode=disable")).connect().await;
    for name in ["server.crt", "server.key"] {
        // The server wants its key to be its own and nobody else's to read.
        let copy = cluster.socket_dir().join(name);
        if !copy.exists() {
            let owner = cluster.socket_dir().metadata().unwrap();
            let draft = copy.with_extension(format!("{name}.{:?}", std::thread::current().id()));
            std::fs::copy(certificate(name), &draft).unwrap();
            std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o600)).unwrap();
            chown(&draft, Some(owner.uid()), Some(owner.gid())).unwrap();
            std::fs::rename(&draft, &copy).unwrap();
        }
        let setting = if name == "server.crt" { "ssl_cert_file" } else { "ssl_key_file" };
        admin.batch_execute(&format!("ALTER SYSTEM SET {setting} = '{}'", copy.display())).await.unwrap();
    }
    admin.batch_execute("ALTER SYSTEM SET ssl = on").await.unwrap();
    admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    saltern_testkit::wait::until("the server to encrypt", Duration::from_secs(20), async || {
        Store::open(&Location::parse(&format!("{url}?sslmode=require")).unwrap(), &Options::default()).await.is_ok()
    })
    .await;
    Some(url)
}

fn certificate(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

/// Whether the store's connections to this address are encrypted; it has to work, too.
async fn is_encrypted(address: &str) -> bool {
    let named = format!("{address}{}application_name=probe", if address.contains('?') { "&" } else { "?" });
    let store = Store::open(&Location::parse(&named).unwrap(), &Options::default()).await.unwrap();
    store.log_events(vec![event("over the wire")]).await.unwrap();
    assert!(!all_tags(&store).await.is_empty());
    let (plain, _) = address.split_once('?').unwrap_or((address, ""));
    let outside = Database::at(&format!("{plain}?sslmode=disable")).connect().await;
    let own = "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
               WHERE a.application_name = 'probe' AND a.datname = current_database()";
    let encrypted = outside.query_one(own, &[]).await.unwrap().get(0);
    store.close().await;
    drop(store);
    // Its connections end after it; the next question is about others.
    saltern_testkit::wait::until("the connections to end", Duration::from_secs(20), async || {
        outside.query_one(own, &[]).await.unwrap().get::<_, Option<bool>>(0).is_none()
    })
    .await;
    encrypted
}

async fn refusal(address: &str) -> String {
    let refused = Store::open(&Location::parse(address).unwrap(), &Options::default()).await.err();
    refused.unwrap().to_string()
}
