//! `auth.*`: tokens by way of a runner. Neither arguments nor values of these are told in events.

use crate::salt::error::Failure;
use crate::salt::function::{Call, Function, Outcome, Trouble};
use crate::salt::session::{self, Source};
use saltern_core::value::{Map, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "auth.mk_token",
        params: "username, password, eauth=None, token_expire=None",
        doc: "Makes a token for somebody who can log in.",
        secret: true,
        run: |call| Box::pin(make(call)),
    },
    Function {
        name: "auth.del_token",
        params: "token",
        doc: "Takes a token back: one's own, or anybody's for a server admin.",
        secret: true,
        run: |call| Box::pin(delete(call)),
    },
];

async fn make(call: Call) -> Outcome {
    let asked: Map = ["username", "password", "eauth"]
        .into_iter()
        .filter_map(|name| Some((Value::from(name), call.given.get(name)?.clone())))
        .collect();
    let wrong = || Trouble::Raised("the user name or the password is wrong".into());
    let credentials = session::credentials(&asked).ok_or_else(wrong)?;
    let source = Source::of(&call.caller.origin);
    let identity =
        session::vouch(&call.salt, source, &credentials).await.map_err(Trouble::Refused)?.ok_or_else(wrong)?;
    let signed_in: Result<_, Failure> = session::sign_in(&call.salt, identity, source, None).await;
    Ok(session::token_element(&signed_in.map_err(Trouble::Refused)?))
}

async fn delete(call: Call) -> Outcome {
    let token = call.given.required("token")?;
    let is_gone = call.salt.app.revoke(&call.caller, &token).await.map_err(|error| call.trouble(error))?;
    Ok(is_gone.into())
}
