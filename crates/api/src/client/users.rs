//! What a client can ask about people, and coming in as one of them.

use super::{Client, ClientError, Page, Query, escape};
use crate::shape::{LogIn, LoggedIn, Me, NewUser, PasswordChange, User, UserChange, UserList};
use hyper::Method;

impl Client {
    /// Logs in: a name and a password become a token.
    pub async fn log_in(&self, wanted: &LogIn) -> Result<LoggedIn, ClientError> {
        self.send(Method::POST, "/api/v1/sessions", wanted).await
    }

    /// Ends the log-in whose token is used.
    pub async fn log_out(&self) -> Result<(), ClientError> {
        self.remove("/api/v1/sessions/current", None).await
    }

    /// Whoever asks, as the server knows him.
    pub async fn me(&self) -> Result<Me, ClientError> {
        self.get("/api/v1/users/me").await
    }

    /// Changes one's own password.
    pub async fn change_password(&self, change: &PasswordChange) -> Result<(), ClientError> {
        self.tell(Method::PUT, "/api/v1/users/me/password", change).await
    }

    /// The users.
    pub async fn users(&self) -> Result<Vec<User>, ClientError> {
        self.pages::<UserList>("/api/v1/users", Query::new()).await
    }

    /// One user.
    pub async fn user(&self, name: &str) -> Result<User, ClientError> {
        self.get(&path(name)).await
    }

    /// Makes a user.
    pub async fn create_user(&self, user: &NewUser) -> Result<User, ClientError> {
        self.create("/api/v1/users", user).await
    }

    /// Changes a user that is still at that version.
    pub async fn change_user(&self, name: &str, version: i64, change: &UserChange) -> Result<User, ClientError> {
        self.change(Method::PATCH, &path(name), version, change).await
    }

    /// Removes a user that is still at that version.
    pub async fn delete_user(&self, name: &str, version: i64) -> Result<(), ClientError> {
        self.remove(&path(name), Some(version)).await
    }
}

impl Page for UserList {
    type Item = User;

    fn split(self) -> (Vec<User>, Option<String>) {
        (self.users, self.next)
    }
}

fn path(name: &str) -> String {
    format!("/api/v1/users/{}", escape(name))
}
