//! What a client can ask about tokens and open log-ins.

use super::{Client, ClientError, Page, Query, escape};
use crate::shape::{CreatedToken, NewToken, Token, TokenList};
use hyper::Method;

impl Client {
    /// Tokens and open log-ins: of one user, or of everybody whom one may ask about.
    pub async fn tokens(&self, user: Option<&str>) -> Result<Vec<Token>, ClientError> {
        self.pages::<TokenList>("/api/v1/tokens", Query::new().add("user", user)).await
    }

    /// Makes a token. Its secret is in the answer and nowhere else, so a lost answer is a lost token.
    pub async fn create_token(&self, token: &NewToken) -> Result<CreatedToken, ClientError> {
        self.send(Method::POST, "/api/v1/tokens", token).await
    }

    /// Takes a token back, or ends a log-in.
    pub async fn delete_token(&self, id: &str) -> Result<(), ClientError> {
        self.remove(&format!("/api/v1/tokens/{}", escape(id)), None).await
    }
}

impl Page for TokenList {
    type Item = Token;

    fn split(self) -> (Vec<Token>, Option<String>) {
        (self.tokens, self.next)
    }
}
