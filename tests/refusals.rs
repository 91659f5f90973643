//! What keeps the server from starting: one clear sentence, an exit code, and nothing harmed.

use saltern_e2e::SmallDisk;
use saltern_testkit::process::{Saltern, binary, run_to_end};
use saltern_testkit::scratch::Scratch;
use saltern_testkit::wait;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Starts a server that must refuse; gives its one sentence.
async fn refused(arguments: &[&str]) -> String {
    let mut command = Command::new(binary());
    command.arg("serve").args(arguments).env_remove("SALTERN_DATA_DIR");
    sentence(&run_to_end(command, Duration::from_secs(60)).await)
}

fn sentence(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "more than a sentence: {said}");
    assert!(!said.contains("panicked") && !said.contains("Error {"), "{said}");
    said
}

fn text(path: &Path) -> &str {
    path.to_str().expect("scratch paths are UTF-8")
}

#[tokio::test]
async fn a_mistake_in_the_configuration_is_named_with_its_place() {
    let scratch = Scratch::new("bad");
    let data = scratch.path().join("data");
    for (config, expected) in [
        ("publish_prot: 4505\n", "key publish_prot: is not a setting; did you mean publish_port?"),
        ("auto_accept: perhaps\n", "key auto_accept: must be yes or no"),
        ("file_roots: /srv/salt\n", "key file_roots: must be a map"),
        ("a: [1, 2\n", "line"),
    ] {
        let file = scratch.write("master", config);
        let said = refused(&["-c", text(&file), "--data-dir", text(&data)]).await;
        assert!(said.contains(expected) && said.contains("master"), "{said}");
    }
    let said = refused(&["-c", "/does/not/exist", "--data-dir", text(&data)]).await;
    assert!(said.contains("/does/not/exist") && said.contains("cannot be read"), "{said}");
    assert!(!data.exists(), "a server that refuses its configuration makes nothing");
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let scratch = Scratch::new("port");
    let data = scratch.path().join("data");
    let said =
        refused(&["--listen", "127.0.0.1", "--data-dir", text(&data), "--publish-port", &port, "--return-port", "0"])
            .await;
    assert!(said.contains(&port) && said.contains("publish_port"), "{said}");
}

#[tokio::test]
async fn a_data_directory_that_cannot_be_written_is_named() {
    let scratch = Scratch::new("ro");
    let file = scratch.write("file", "");
    let below = file.join("data");
    let said =
        refused(&["--listen", "127.0.0.1", "--publish-port", "0", "--return-port", "0", "--data-dir", text(&below)])
            .await;
    assert!(said.contains(text(&below)), "{said}");
    let said =
        refused(&["--listen", "127.0.0.1", "--publish-port", "0", "--return-port", "0", "--data-dir", "/proc/saltern"])
            .await;
    assert!(said.contains("/proc/saltern"), "{said}");
}

#[tokio::test]
async fn one_data_directory_has_one_server() {
    let server = Saltern::start("", &[]).await;
    let data = server.data_dir();
    let said =
        refused(&["--listen", "127.0.0.1", "--publish-port", "0", "--return-port", "0", "--data-dir", text(&data)])
            .await;
    assert!(said.contains("another saltern server") && said.contains(text(&data)), "{said}");
    assert!(server.is_running());
}

#[tokio::test]
async fn a_database_out_of_reach_is_named_without_its_password() {
    let scratch = Scratch::new("pg");
    let data = scratch.path().join("data");
    let url = "postgres://salt:hunter2@127.0.0.1:1/saltern";
    let arguments = [
        "--listen",
        "127.0.0.1",
        "--publish-port",
        "0",
        "--return-port",
        "0",
        "--data-dir",
        text(&data),
        "--database",
        url,
    ];
    let said = refused(&arguments).await;
    assert!(
        said.contains("127.0.0.1:1") && said.contains("cannot open the database") && !said.contains("hunter2"),
        "{said}"
    );
}

#[tokio::test]
async fn a_full_disk_is_told_and_harms_nothing() {
    let scratch = Scratch::new("full");
    let mount = scratch.path().join("small");
    let Some(disk) = SmallDisk::mount(&mount, 4) else { return };
    let data = mount.join("data");
    let arguments = ["--listen", "127.0.0.1", "--publish-port", "0", "--return-port", "0", "--data-dir", text(&data)];
    disk.fill();
    let said = refused(&arguments).await;
    assert!(said.contains("space") || said.contains("full"), "{said}");
    disk.free();
    // With room again the same command works: nothing was left half made.
    let mut server = Command::new(binary()).arg("serve").args(arguments).stderr(Stdio::null()).spawn().unwrap();
    let socket = data.join("control.sock");
    wait::until_blocking("the server to serve", Duration::from_secs(60), || UnixStream::connect(&socket).is_ok());
    server.kill().unwrap();
    server.wait().unwrap();
}
