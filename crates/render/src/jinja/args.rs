//! Arguments of a call, by place or by name, as Python passes them.

use minijinja::value::{Kwargs, from_args};
use minijinja::{Error, ErrorKind, Value};

/// The arguments of one call.
pub(super) struct Args<'a> {
    positional: &'a [Value],
    named: Option<Kwargs>,
}

impl<'a> Args<'a> {
    pub(super) fn new(args: &'a [Value]) -> Self {
        match args.split_last() {
            Some((last, positional)) if last.is_kwargs() => Self {
                positional,
                named: from_args::<(Kwargs,)>(std::slice::from_ref(last)).ok().map(|(named,)| named),
            },
            _ => Self { positional: args, named: None },
        }
    }

    /// All that came without a name.
    pub(super) fn positional(&self) -> &'a [Value] {
        self.positional
    }

    /// The argument at a place or under a name; `None` given explicitly is given.
    pub(super) fn get(&self, place: usize, name: &str) -> Option<Value> {
        let by_name = || self.named.as_ref().filter(|named| named.has(name))?.peek::<Value>(name).ok();
        self.positional.get(place).cloned().or_else(by_name)
    }

    /// The argument, which must be there.
    pub(super) fn need(&self, place: usize, name: &str) -> Result<Value, Error> {
        let missing = || Error::new(ErrorKind::MissingArgument, format!("'{name}' is missing"));
        self.get(place, name).ok_or_else(missing)
    }

    /// The argument as text, which it must be.
    pub(super) fn need_text(&self, place: usize, name: &str) -> Result<String, Error> {
        let value = self.need(place, name)?;
        let wrong = || Error::new(ErrorKind::InvalidOperation, format!("'{name}' is not text but {}", value.kind()));
        value.as_str().map(str::to_owned).ok_or_else(wrong)
    }

    /// The argument as text, or this one.
    pub(super) fn text_or(&self, place: usize, name: &str, default: &str) -> String {
        self.get(place, name).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_else(|| default.to_owned())
    }

    /// The argument's truth; false if it is not there.
    pub(super) fn flag(&self, place: usize, name: &str) -> bool {
        self.get(place, name).is_some_and(|value| value.is_true())
    }
}
