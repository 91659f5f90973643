//! The throw-away PostgreSQL: empty databases, a server that can be taken away, nothing left afterwards.

use std::process::{Command, Output};
use std::time::Duration;

use saltern_testkit::postgres::Cluster;
use saltern_testkit::{installed, wait};

fn psql(url: &str, sql: &str) -> Output {
    let program = installed::postgres_programs().expect("a cluster is running").join("psql");
    Command::new(program).args(["--no-psqlrc", "-qAt", "-d", url, "-c", sql]).output().expect("psql is beside initdb")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn each_test_gets_an_empty_database_of_its_own() {
    let Some(cluster) = Cluster::shared() else { return };
    let (one, two) = (cluster.fresh_database(), cluster.fresh_database());
    text(&psql(&one, "create table t (a int)"));
    let tables = "select count(*) from information_schema.tables where table_schema = 'public'";
    assert_eq!(text(&psql(&one, tables)), "1");
    assert_eq!(text(&psql(&two, tables)), "0");
}

#[test]
fn the_shared_cluster_is_reachable_by_its_socket() {
    let Some(cluster) = Cluster::shared() else { return };
    let by_socket =
        format!("host={} port={} user=saltern dbname=postgres", cluster.socket_dir().display(), cluster.port());
    assert_eq!(text(&psql(&by_socket, "select 1")), "1");
}

#[test]
fn a_stopped_cluster_refuses_and_a_resumed_one_has_its_data() {
    let Some(cluster) = Cluster::start() else { return };
    let url = cluster.fresh_database();
    text(&psql(&url, "create table t as select 7 as a"));
    cluster.stop();
    assert!(!psql(&url, "select 1").status.success());
    cluster.resume();
    assert_eq!(text(&psql(&url, "select a from t")), "7");
    let folder = cluster.socket_dir().to_owned();
    drop(cluster);
    wait::until_blocking("the cluster's folder to be gone", Duration::from_secs(10), || !folder.exists());
}
