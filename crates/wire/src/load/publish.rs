//! The publish load: what to run, and who should.

use super::{Error, Fun, field};
use bytestring::ByteString;
use saltern_core::ids::Jid;
use saltern_core::value::{Map, Value};

/// A job as published. Everybody receives it; each minion decides from `tgt` whether it is meant.
#[derive(Clone, Debug)]
pub struct Publish {
    /// The job.
    pub jid: Jid,
    /// What to run.
    pub fun: Fun,
    /// Its arguments; a list of lists where several functions are run.
    pub arg: Vec<Value>,
    /// Whom it is for: an expression, or a list of ids.
    pub tgt: Value,
    /// How `tgt` is to be read (`glob`, `list`, `compound`, …).
    pub tgt_type: ByteString,
    /// Returners the minion calls itself, comma-separated. Always sent: without it the job process crashes at its end.
    pub ret: ByteString,
    /// Who asked.
    pub user: Option<ByteString>,
    /// What parts keys in grain and pillar targets, if not `:`.
    pub delimiter: Option<ByteString>,
    /// Copied into the return.
    pub metadata: Option<Map>,
    /// Copied into the return.
    pub master_id: Option<ByteString>,
    /// Executors to run the function through, outermost first.
    pub module_executors: Vec<ByteString>,
    /// For those executors.
    pub executor_opts: Option<Value>,
    /// Asks 3008 minions for an event when the job starts.
    pub start_event: bool,
    /// How long the client waits, in seconds; for syndics.
    pub timeout: Option<i64>,
    /// Rises with every publication under one shared key; a minion ignores what does not.
    pub serial: Option<i64>,
    /// Whatever else is in a load that was read.
    pub extra: Map,
}

/// Read into fields of their own.
const KNOWN: [&str; 15] = [
    "fun",
    "arg",
    "tgt",
    "jid",
    "ret",
    "tgt_type",
    "user",
    "delimiter",
    "metadata",
    "master_id",
    "module_executors",
    "executor_opts",
    "start_event",
    "to",
    "serial",
];

impl Publish {
    /// A job with nothing optional.
    pub fn new(jid: Jid, fun: Fun, arg: Vec<Value>, tgt: impl Into<Value>, tgt_type: &str) -> Self {
        Self {
            jid,
            fun,
            arg,
            tgt: tgt.into(),
            tgt_type: tgt_type.into(),
            ret: ByteString::new(),
            user: None,
            delimiter: None,
            metadata: None,
            master_id: None,
            module_executors: Vec::new(),
            executor_opts: None,
            start_event: false,
            timeout: None,
            serial: None,
            extra: Map::new(),
        }
    }

    /// The load, in the order a stock master writes it.
    pub fn into_map(self) -> Map {
        let mut map = Map::with_capacity(KNOWN.len() + self.extra.len());
        map.push("fun", self.fun);
        map.push("arg", self.arg);
        map.push("tgt", self.tgt);
        map.push("jid", self.jid);
        map.push("ret", self.ret);
        map.push("tgt_type", self.tgt_type);
        let mut push = |name: &str, value: Value| {
            if !value.is_nil() {
                map.push(name, value);
            }
        };
        push("user", self.user.into());
        push("delimiter", self.delimiter.filter(|delimiter| *delimiter != ":").into());
        push("metadata", self.metadata.into());
        push("master_id", self.master_id.into());
        if !self.module_executors.is_empty() {
            push("module_executors", Value::list(self.module_executors));
        }
        push("executor_opts", self.executor_opts.into());
        if self.start_event {
            push("start_event", true.into());
        }
        push("to", self.timeout.into());
        push("serial", self.serial.into());
        for (name, value) in self.extra {
            map.push(name, value);
        }
        map
    }

    /// Reads a load, as a minion does.
    pub fn parse(load: Map) -> Result<Self, Error> {
        let wrong = |field, wanted| Error::Wrong { field, wanted };
        let int = |name| match field::present(&load, name) {
            Some(value) => value.as_i64().map(Some).ok_or(wrong(name, "an integer")),
            None => Ok(None),
        };
        let executors = match field::present(&load, "module_executors").map(Fun::read) {
            None => Vec::new(),
            Some(names) => names.ok_or(wrong("module_executors", "text or a list of text"))?.names().to_vec(),
        };
        let arg = field::required(&load, "arg")?.as_list().ok_or(wrong("arg", "a list"))?.to_vec();
        let fun = Fun::read(field::required(&load, "fun")?).ok_or(wrong("fun", "a function or a list of them"))?;
        let tgt = match field::required(&load, "tgt")? {
            tgt @ (Value::Text(_) | Value::List(_)) => tgt.clone(),
            _ => return Err(wrong("tgt", "text or a list")),
        };
        Ok(Self {
            jid: Jid::parse(&field::text(&load, "jid")?).ok_or(wrong("jid", "a job id"))?,
            fun,
            arg,
            tgt,
            tgt_type: field::text_if_present(&load, "tgt_type")?.unwrap_or_else(|| "glob".into()),
            ret: field::text_if_present(&load, "ret")?.unwrap_or_default(),
            user: field::text_if_present(&load, "user")?,
            delimiter: field::text_if_present(&load, "delimiter")?,
            metadata: field::map_if_present(&load, "metadata")?,
            master_id: field::text_if_present(&load, "master_id")?,
            module_executors: executors,
            executor_opts: field::present(&load, "executor_opts").cloned(),
            start_event: load.get("start_event").is_some_and(Value::is_truthy),
            timeout: int("to")?,
            serial: int("serial")?,
            extra: load.into_iter().filter(|(key, _)| !key.as_str().is_some_and(|key| KNOWN.contains(&key))).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Publish {
        let jid = Jid::parse("20261115200427443183").unwrap();
        Publish::new(jid, "test.ping".into(), vec![], "web*", "glob")
    }

    #[test]
    fn the_least_load_has_ret_so_that_no_minion_crashes() {
        let map = job().into_map();
        let keys: Vec<_> = map.iter().map(|(key, _)| key.as_str().unwrap()).collect();
        assert_eq!(keys, ["fun", "arg", "tgt", "jid", "ret", "tgt_type"]);
        assert_eq!(map.get("ret").unwrap().as_str(), Some(""));
    }

    #[test]
    fn every_field_goes_there_and_back() {
        let full = Publish {
            fun: Fun::Many(vec!["a.b".into(), "c.d".into()]),
            arg: vec![Value::list([1]), Value::list(["x"])],
            tgt: Value::list(["a", "b"]),
            tgt_type: "list".into(),
            ret: "local".into(),
            user: Some("root".into()),
            delimiter: Some("|".into()),
            metadata: Some(Value::map([("k", 1)]).as_map().unwrap().clone()),
            master_id: Some("m".into()),
            module_executors: vec!["direct_call".into()],
            executor_opts: Some(Value::map([("x", 1)])),
            start_event: true,
            timeout: Some(5),
            serial: Some(9),
            extra: Value::map([("other", true)]).as_map().unwrap().clone(),
            ..job()
        };
        for job in [full, job()] {
            let map = job.into_map();
            let back = Publish::parse(map.clone()).unwrap().into_map();
            assert_eq!(Value::Map(back), Value::Map(map));
        }
    }

    #[test]
    fn the_usual_delimiter_is_not_sent() {
        assert!(Publish { delimiter: Some(":".into()), ..job() }.into_map().get("delimiter").is_none());
    }

    #[test]
    fn one_executor_may_be_plain_text() {
        let mut map = job().into_map();
        map.push("module_executors", "splay");
        assert_eq!(Publish::parse(map).unwrap().module_executors, ["splay"]);
    }

    #[test]
    fn a_load_without_arg_is_no_job() {
        let mut map = job().into_map();
        map.remove("arg");
        assert_eq!(Publish::parse(map).unwrap_err(), Error::Missing("arg"));
    }
}
