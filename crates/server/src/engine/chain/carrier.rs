//! The hidden action that carries a chunk to minions, or asks them where they stand.

use saltern_core::action::types::{ActionType, BadParams, Call, Param};
use saltern_core::chain::Heard;
use saltern_core::run::Verdict;
use saltern_core::value::{Map, Value};

/// The type of carriers. Nobody can ask for one: it is not among `types::ALL`.
#[derive(Debug)]
pub(crate) struct Carrier;

/// The only one there is.
pub(crate) static CARRIER: Carrier = Carrier;

/// What a carrier is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Run a chunk
    Start,
    /// Tell where you stand, and go on with what was interrupted
    Resume,
    /// Begin nothing more, and tell where you stand
    Cancel,
    /// Kill what runs, begin nothing more, and tell where you stand
    Stop,
}

impl Errand {
    /// The function of the minion's module.
    pub(super) const fn function(self) -> &'static str {
        match self {
            Self::Start => "saltern_chain.start",
            Self::Resume => "saltern_chain.resume",
            Self::Cancel => "saltern_chain.cancel",
            Self::Stop => "saltern_chain.stop",
        }
    }

    /// What a carrier's function is for.
    pub(super) fn of(function: &str) -> Self {
        let all = [Self::Start, Self::Resume, Self::Cancel, Self::Stop];
        all.into_iter().find(|errand| errand.function() == function).unwrap_or(Self::Resume)
    }
}

impl Carrier {
    /// The parameters of one: its function with arguments, which chunk, and whether that may change something.
    pub(super) fn params(errand: Errand, chunk: usize, arg: Vec<Value>, restricted: bool) -> Map {
        let chunk = i64::try_from(chunk).unwrap_or(i64::MAX);
        let params = Value::map([
            ("fun", Value::from(errand.function())),
            ("arg", Value::List(arg)),
            ("chunk", chunk.into()),
            ("restricted", restricted.into()),
        ]);
        params.as_map().cloned().unwrap_or_default()
    }
}

impl ActionType for Carrier {
    fn name(&self) -> &'static str {
        "chain"
    }

    fn title(&self) -> &'static str {
        "Part of a chain"
    }

    fn help(&self) -> &'static str {
        "Carry a part of a chain to minions; made by the server itself"
    }

    fn params(&self) -> &'static [Param] {
        &[]
    }

    fn call(&self, params: &Map) -> Result<Call, BadParams> {
        let fun = params.get("fun").and_then(Value::as_str).unwrap_or_default().to_owned();
        let arg = params.get("arg").and_then(Value::as_list).unwrap_or_default().to_vec();
        Ok(Call { funs: vec![fun], arg, kwarg: Map::new() })
    }

    /// What it carries was checked when the chain was launched.
    fn compile(&self, params: &Map) -> Result<Call, BadParams> {
        self.call(params)
    }

    fn describe(&self, params: &Map) -> String {
        let chunk = params.get("chunk").and_then(Value::as_i64).unwrap_or_default();
        format!("chunk {chunk} of a chain")
    }

    fn is_restricted(&self, params: &Map) -> bool {
        params.get("restricted").and_then(Value::as_bool).unwrap_or(true)
    }

    /// It has done its work when the minion has told how the chunk stands, be that good or bad: the steps are judged one by one.
    fn judge(&self, _params: &Map, returned: &Value) -> Verdict {
        let told = saltern_core::chain::read(returned.get("return").unwrap_or(&Value::Nil));
        let success = matches!(told, Heard::Answer(_) | Heard::Error { .. });
        Verdict { success, retcode: i64::from(!success) }
    }
}
