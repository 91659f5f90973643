//! The control socket: HTTP on a Unix socket in the data directory, for whoever may open that file.
//!
//! The file is made private before it gets its name, so there is no moment at which others could connect. Who speaks is
//! what the kernel says (peer credentials), not what the client says.

use crate::v1;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{Request, connect_info};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::serve::IncomingStream;
use saltern_server::app::{App, Caller};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

/// The name of the socket in the data directory.
pub const FILE_NAME: &str = "control.sock";

/// The name it has while it is made; no longer than the final one, so that both fit or none.
const DRAFT_NAME: &str = "control.new";

/// The longest path a socket can have.
const LONGEST_PATH: usize = 107;

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A server answers there.
    #[error("another saltern server answers on {}", .0.display())]
    InUse(PathBuf),
    /// The path does not fit into a socket's address.
    #[error(
        "the path of the control socket {} is {} bytes long, and sockets take {LONGEST_PATH}: use a shorter data directory",
        .0.display(), .0.as_os_str().len()
    )]
    TooLong(PathBuf),
    /// The file cannot be made.
    #[error("cannot make the control socket {}: {error}", path.display())]
    Bind {
        /// Where
        path: PathBuf,
        /// Why
        error: io::Error,
    },
    /// Serving ended.
    #[error("the control socket failed: {0}")]
    Serve(io::Error),
}

/// A control socket that is bound; its file is removed on drop.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    file: SocketFile,
}

#[derive(Debug)]
struct SocketFile(PathBuf);

impl ControlSocket {
    /// Makes the socket. A file that nobody answers on is what a killed server left, and is replaced.
    pub async fn bind(path: &Path) -> Result<Self, ControlError> {
        if path.as_os_str().len() > LONGEST_PATH {
            return Err(ControlError::TooLong(path.into()));
        }
        if UnixStream::connect(path).await.is_ok() {
            return Err(ControlError::InUse(path.into()));
        }
        let draft = path.with_file_name(DRAFT_NAME);
        let listener = bind_private(&draft, path).map_err(|error| ControlError::Bind { path: path.into(), error })?;
        Ok(Self { listener, file: SocketFile(path.into()) })
    }

    /// Answers until `stop`; then lets answers in hand finish.
    pub async fn serve(self, app: App, stop: CancellationToken) -> Result<(), ControlError> {
        let Self { listener, file } = self;
        let router = v1::router(app, None, stop.clone()).layer(middleware::from_fn(identify));
        let service = router.into_make_service_with_connect_info::<Peer>();
        let served = axum::serve(listener, service).with_graceful_shutdown(stop.cancelled_owned()).await;
        drop(file);
        served.map_err(ControlError::Serve)
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn bind_private(draft: &Path, path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(draft)?;
    std::fs::set_permissions(draft, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(draft, path)?;
    Ok(listener)
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
struct Peer(Caller);

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        let who = match stream.io().peer_cred() {
            Ok(credentials) => user_name(credentials.uid()),
            Err(_) => "unknown".into(),
        };
        Self(Caller::administrator(who, "control socket"))
    }
}

async fn identify(
    ConnectInfo(Peer(caller)): connect_info::ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// The user's name as the password file has it, else the number.
fn user_name(uid: u32) -> String {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_in(&passwd, uid).unwrap_or_else(|| format!("uid {uid}"))
}

fn name_in(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_known_by_name_and_else_by_number() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(name_in(passwd, 1000).as_deref(), Some("ann"));
        assert_eq!(name_in(passwd, 7), None);
    }

    #[tokio::test]
    async fn the_socket_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let _socket = ControlSocket::bind(&path).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn what_a_killed_server_left_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        ControlSocket::bind(&path).await.unwrap();
    }

    #[tokio::test]
    async fn a_socket_somebody_answers_on_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let _first = ControlSocket::bind(&path).await.unwrap();
        assert!(matches!(ControlSocket::bind(&path).await, Err(ControlError::InUse(_))));
        assert!(path.exists());
    }

    #[tokio::test]
    async fn a_path_that_does_not_fit_is_told() {
        let path = Path::new("/tmp").join("x".repeat(120)).join(FILE_NAME);
        let error = ControlSocket::bind(&path).await.unwrap_err();
        assert!(error.to_string().contains("use a shorter data directory"), "{error}");
    }

    #[tokio::test]
    async fn the_file_goes_with_the_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        drop(ControlSocket::bind(&path).await.unwrap());
        assert!(!path.exists());
    }
}
