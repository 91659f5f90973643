//! `_return`: what came of a job on one minion.

use super::{Error, Fun, field};
use bytestring::ByteString;
use saltern_core::ids::Jid;
use saltern_core::value::{Map, Value};

/// A return. The fields decisions hang on are read; the others are looked up in the load, which stays whole.
#[derive(Clone, Debug)]
pub struct Return {
    /// The minion by its own account: to be compared with who is authenticated.
    pub id: ByteString,
    /// Which job it belongs to.
    pub jid: ReturnJid,
    /// What was run.
    pub fun: Fun,
    load: Map,
}

/// The job a return belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnJid {
    /// A job the server knows, or should.
    Job(Jid),
    /// `req`: the server is to assign one (schedules, start-up states, `salt-call`).
    Req,
    /// `nocache`: not to be stored.
    Nocache,
}

impl Return {
    /// Reads a load whose channel fields were taken out.
    pub fn parse(load: Map) -> Result<Self, Error> {
        let jid = match &*field::text(&load, "jid")? {
            "req" => ReturnJid::Req,
            "nocache" => ReturnJid::Nocache,
            text => ReturnJid::Job(Jid::parse(text).ok_or(Error::Wrong { field: "jid", wanted: "a job id" })?),
        };
        let wanted = "a function or a list of them";
        let fun = Fun::read(field::required(&load, "fun")?).ok_or(Error::Wrong { field: "fun", wanted })?;
        if load.get("return").is_none() {
            return Err(Error::Missing("return"));
        }
        if field::present(&load, "fun_args").is_some_and(|args| args.as_list().is_none()) {
            return Err(Error::Wrong { field: "fun_args", wanted: "a list" });
        }
        Ok(Self { id: field::text(&load, "id")?, jid, fun, load })
    }

    /// What the function returned.
    pub fn value(&self) -> &Value {
        self.load.get("return").unwrap_or(&Value::Nil)
    }

    /// The published arguments, keyword maps included.
    pub fn fun_args(&self) -> &[Value] {
        self.load.get("fun_args").and_then(Value::as_list).unwrap_or_default()
    }

    /// 0 if all went well; a map by function where several were run.
    pub fn retcode(&self) -> Option<&Value> {
        field::present(&self.load, "retcode")
    }

    /// Whether the minion calls it a success; a map by function where several were run; absent from `salt-call`.
    pub fn success(&self) -> Option<&Value> {
        field::present(&self.load, "success")
    }

    /// How the value is best shown (`highstate`, `nested`, …).
    pub fn out(&self) -> Option<&str> {
        self.text("out")
    }

    /// Who asked for it.
    pub fn user(&self) -> Option<&str> {
        self.text("user")
    }

    /// The name of the minion's own schedule that ran it.
    pub fn schedule(&self) -> Option<&str> {
        self.text("schedule")
    }

    /// What the publisher attached to the job.
    pub fn metadata(&self) -> Option<&Value> {
        field::present(&self.load, "metadata")
    }

    /// The master id the job was published with.
    pub fn master_id(&self) -> Option<&str> {
        self.text("master_id")
    }

    /// The resource behind the minion that the result is about (3008).
    pub fn resource_id(&self) -> Option<&str> {
        self.text("resource_id")
    }

    /// The minion's clock when it was done, as text.
    pub fn stamp(&self) -> Option<&str> {
        self.text("_stamp")
    }

    /// The load as sent: the body of the event.
    pub fn load(&self) -> &Map {
        &self.load
    }

    /// As [`load`](Self::load), taken out.
    pub fn into_load(self) -> Map {
        self.load
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.load.get(field).and_then(Value::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> Map {
        let mut map = Map::new();
        map.push("cmd", "_return");
        map.push("id", "web1");
        map.push("jid", "20261115200427443183");
        map.push("fun", "test.ping");
        map.push("return", Value::Nil);
        map
    }

    #[test]
    fn the_least_return_is_read() {
        let back = Return::parse(load()).unwrap();
        assert_eq!(back.jid, ReturnJid::Job(Jid::parse("20261115200427443183").unwrap()));
        assert_eq!(back.fun, Fun::from("test.ping"));
        assert!(back.value().is_nil() && back.fun_args().is_empty() && back.retcode().is_none());
        assert_eq!(back.load().len(), 5);
    }

    #[test]
    fn several_functions_return_maps_by_function() {
        let mut load = load();
        load.insert("fun", Value::list(["a.b", "c.d"]));
        load.insert("retcode", Value::map([("a.b", 0), ("c.d", 1)]));
        let back = Return::parse(load).unwrap();
        assert_eq!(back.fun.names(), ["a.b", "c.d"]);
        assert_eq!(back.retcode().unwrap().get("c.d").unwrap().as_i64(), Some(1));
    }

    #[test]
    fn jids_that_ask_for_something_are_told_apart() {
        for (text, jid) in [("req", ReturnJid::Req), ("nocache", ReturnJid::Nocache)] {
            let mut load = load();
            load.insert("jid", text);
            assert_eq!(Return::parse(load).unwrap().jid, jid);
        }
    }

    #[test]
    fn errors_name_the_field() {
        for (name, value, error) in [
            ("jid", Value::from("../../etc"), Error::Wrong { field: "jid", wanted: "a job id" }),
            ("fun", Value::list([1]), Error::Wrong { field: "fun", wanted: "a function or a list of them" }),
            ("fun_args", Value::from(1), Error::Wrong { field: "fun_args", wanted: "a list" }),
            ("id", Value::Nil, Error::Missing("id")),
        ] {
            let mut load = load();
            load.insert(name, value);
            assert_eq!(Return::parse(load).unwrap_err(), error);
        }
        let mut load = load();
        load.remove("return");
        assert_eq!(Return::parse(load).unwrap_err(), Error::Missing("return"));
    }
}
