//! Thousands of connections that say nothing.

use crate::house::House;
use rustix::process::{Resource, getrlimit, setrlimit};
use saltern_wire::zmtp::greeting;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const MANY: usize = 5_000;

/// Shorter than the time after which the server gives up on a silent connection, so that waiting for that is a failure.
const AT_ONCE: Duration = Duration::from_secs(8);

#[tokio::test]
async fn a_minion_is_served_at_once_beside_thousands_of_half_open_connections() {
    raise_descriptor_limit();
    let house = House::open().await;
    for (address, said) in [
        (house.requests, &[][..]),
        (house.requests, &greeting::OURS),
        (house.publications, &[]),
        (house.publications, &greeting::OURS),
    ] {
        let mut silent = Vec::with_capacity(MANY);
        for _ in 0..MANY {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // The oldest are hung up on by and by.
            let _ = stream.write_all(said).await;
            silent.push(stream);
        }
        tokio::time::timeout(AT_ONCE, house.serves()).await.expect("served at once");
        drop(silent);
    }
}

/// Each connection takes a descriptor here, and for a while another one on the server's side.
fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let enough = limit.maximum.is_none_or(|most| most >= 8_000);
    assert!(enough, "this test needs 8000 file descriptors; the hard limit is {:?}", limit.maximum);
}
