//! Lists and maps as Python has them: shared, changeable, printed in Python's way; and the bridge to `core::Value`.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Kwargs, Object, ObjectRepr, Tuple, ValueKind, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use saltern_core::value::{Map as CoreMap, Value as Core};

use super::texts;
use crate::yaml;

/// How deep a value may nest on its way back.
const MAX_DEPTH: usize = 100;

/// A Python list.
#[derive(Debug, Default)]
pub(super) struct List(Mutex<Vec<Value>>);

/// A Python dict.
#[derive(Debug, Default)]
pub(super) struct Dict(Mutex<IndexMap<Value, Value>>);

/// Adds the constructors that `prepare` writes around literals, and `dict`.
pub(super) fn install(env: &mut Environment<'_>) {
    env.add_function("_list", |items: Value| list_of(&items));
    env.add_function("_dict", |map: Value| dict_of(&map));
    env.add_function("dict", |from: Option<Value>, kwargs: Kwargs| dict_from(from, kwargs));
    env.add_function("odict", |from: Option<Value>, kwargs: Kwargs| dict_from(from, kwargs));
}

/// A list with these items.
pub(super) fn new_list(items: Vec<Value>) -> Value {
    Value::from_object(List(Mutex::new(items)))
}

/// A dict with these entries.
pub(super) fn new_dict(entries: impl IntoIterator<Item = (Value, Value)>) -> Value {
    Value::from_object(Dict(Mutex::new(entries.into_iter().collect())))
}

/// A new list of the items of anything that has some.
pub(super) fn list_of(items: &Value) -> Result<Value, Error> {
    Ok(new_list(items.try_iter()?.collect()))
}

fn dict_of(map: &Value) -> Result<Value, Error> {
    let keys = map.try_iter()?;
    keys.map(|key| Ok((key.clone(), map.get_item(&key)?))).collect::<Result<Vec<_>, Error>>().map(new_dict)
}

fn dict_from(from: Option<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let dict = Dict::default();
    if let Some(from) = from {
        dict.update(&from)?;
    }
    dict.update_kwargs(&kwargs)?;
    Ok(Value::from_object(dict))
}

/// A method that neither the object nor Jinja knows: Python's methods of text, with lists that can be changed.
pub(super) fn methods(state: &mut State<'_, '_>, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    if value.kind() == ValueKind::Iterable && !value.is_kwargs() {
        // The result of `a + b` or of a filter: a list in Python, a lazy thing here. It can be read, not changed.
        let list = list_of(value)?;
        if !matches!(method, "append" | "extend" | "insert" | "pop" | "remove" | "sort" | "reverse" | "clear") {
            return list.call_method(state, method, args);
        }
    }
    if let Some(text) = value.as_str()
        && let Some(result) = texts::method(text, method, args)
    {
        return result;
    }
    let result = minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)?;
    match result.kind() {
        ValueKind::Seq | ValueKind::Iterable if !result.is_tuple() => list_of(&result),
        _ => Ok(result),
    }
}

impl List {
    fn items(&self) -> MutexGuard<'_, Vec<Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn snapshot(&self) -> Vec<Value> {
        self.items().clone()
    }

    fn position(&self, value: &Value) -> Result<usize, Error> {
        let at = self.snapshot().iter().position(|item| item == value);
        at.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "the value is not in the list"))
    }
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.items().get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.snapshot())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.items().len())
    }

    fn call_method(self: &Arc<Self>, state: &mut State<'_, '_>, name: &str, args: &[Value]) -> Result<Value, Error> {
        let none = Ok(Value::from(()));
        match name {
            "append" => {
                let (item,): (Value,) = from_args(args)?;
                self.items().push(item);
                none
            }
            "extend" => {
                let (more,): (Value,) = from_args(args)?;
                let more: Vec<Value> = more.try_iter()?.collect();
                self.items().extend(more);
                none
            }
            "insert" => {
                let (at, item): (i64, Value) = from_args(args)?;
                let mut items = self.items();
                let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let at = if at < 0 { (len + at).max(0) } else { at.min(len) };
                items.insert(usize::try_from(at).unwrap_or(0), item);
                none
            }
            "pop" => {
                let (at,): (Option<i64>,) = from_args(args)?;
                let mut items = self.items();
                let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let at = at.unwrap_or(-1);
                match usize::try_from(if at < 0 { len + at } else { at }) {
                    Ok(at) if at < items.len() => Ok(items.remove(at)),
                    _ => Err(Error::new(ErrorKind::InvalidOperation, "pop index out of range")),
                }
            }
            "remove" => {
                let (item,): (Value,) = from_args(args)?;
                let at = self.position(&item)?;
                self.items().remove(at);
                none
            }
            "index" => {
                let (item,): (Value,) = from_args(args)?;
                self.position(&item).map(Value::from)
            }
            "reverse" => {
                self.items().reverse();
                none
            }
            "sort" => {
                let sorted = state.apply_filter("sort", &[Value::from_dyn_object(self.clone())])?;
                *self.items() = sorted.try_iter()?.collect();
                none
            }
            "clear" => {
                self.items().clear();
                none
            }
            "copy" => Ok(new_list(self.snapshot())),
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        nested(f, "[...]", |f| {
            f.write_str("[")?;
            for (n, item) in self.snapshot().iter().enumerate() {
                f.write_str(if n > 0 { ", " } else { "" })?;
                write!(f, "{item:?}")?;
            }
            f.write_str("]")
        })
    }
}

impl Dict {
    fn entries(&self) -> MutexGuard<'_, IndexMap<Value, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn snapshot(&self) -> Vec<(Value, Value)> {
        self.entries().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn update(&self, from: &Value) -> Result<(), Error> {
        let is_map = from.kind() == ValueKind::Map;
        let mut entries = Vec::new();
        for item in from.try_iter()? {
            entries.push(if is_map {
                let value = from.get_item(&item)?;
                (item, value)
            } else {
                (item.get_item_by_index(0)?, item.get_item_by_index(1)?)
            });
        }
        self.entries().extend(entries);
        Ok(())
    }

    fn update_kwargs(&self, kwargs: &Kwargs) -> Result<(), Error> {
        for name in kwargs.args() {
            let value: Value = kwargs.peek(name)?;
            self.entries().insert(name.into(), value);
        }
        Ok(())
    }
}

impl Object for Dict {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.entries().get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.entries().keys().cloned().collect())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.entries().len())
    }

    fn call_method(self: &Arc<Self>, _: &mut State<'_, '_>, name: &str, args: &[Value]) -> Result<Value, Error> {
        match name {
            "update" => {
                let (from, kwargs): (Option<Value>, Kwargs) = from_args(args)?;
                if let Some(from) = from {
                    self.update(&from)?;
                }
                self.update_kwargs(&kwargs)?;
                Ok(Value::from(()))
            }
            "get" => {
                let (key, default): (Value, Option<Value>) = from_args(args)?;
                Ok(self.get_value(&key).or(default).unwrap_or_else(|| Value::from(())))
            }
            "setdefault" => {
                let (key, default): (Value, Option<Value>) = from_args(args)?;
                Ok(self.entries().entry(key).or_insert_with(|| default.unwrap_or_else(|| Value::from(()))).clone())
            }
            "pop" => {
                let (key, default): (Value, Option<Value>) = from_args(args)?;
                let popped = self.entries().shift_remove(&key).or(default);
                popped.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, format!("no key {key:?} to pop")))
            }
            "items" => {
                let pair = |(key, value)| Value::from(Tuple::from(vec![key, value]));
                Ok(new_list(self.snapshot().into_iter().map(pair).collect()))
            }
            "keys" => Ok(new_list(self.entries().keys().cloned().collect())),
            "values" => Ok(new_list(self.entries().values().cloned().collect())),
            "clear" => {
                self.entries().clear();
                Ok(Value::from(()))
            }
            "copy" => Ok(new_dict(self.snapshot())),
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }

    /// As Salt prints a dict into an SLS: Python's way, but text with line breaks in double quotes, for YAML to read.
    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        nested(f, "{...}", |f| {
            f.write_str("{")?;
            for (n, (key, value)) in self.snapshot().iter().enumerate() {
                write!(f, "{}{key:?}: ", if n > 0 { ", " } else { "" })?;
                match value.as_str() {
                    Some(text) if text.contains(['\n', '\r', '\t']) => f.write_str(&yaml::double_quoted(text))?,
                    _ => write!(f, "{value:?}")?,
                }
            }
            f.write_str("}")
        })
    }
}

/// Prints a collection unless it is inside itself, or as good as.
fn nested(
    f: &mut fmt::Formatter<'_>,
    placeholder: &str,
    print: impl FnOnce(&mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    thread_local!(static DEPTH: Cell<usize> = const { Cell::new(0) });
    let depth = DEPTH.get();
    if depth >= MAX_DEPTH {
        return f.write_str(placeholder);
    }
    DEPTH.set(depth + 1);
    let result = print(f);
    DEPTH.set(depth);
    result
}

/// A value for templates.
pub(super) fn to_jinja(value: &Core) -> Value {
    match value {
        Core::Nil => Value::from(()),
        Core::Bool(bool) => Value::from(*bool),
        Core::Int(int) => Value::from(*int),
        Core::UInt(int) => Value::from(*int),
        Core::Float(float) => Value::from(*float),
        Core::Text(text) => Value::from(&**text),
        Core::Bytes(bytes) => Value::from_bytes(bytes.to_vec()),
        Core::List(items) => new_list(items.iter().map(to_jinja).collect()),
        Core::Map(map) => map_to_jinja(map),
        Core::Ext(..) => Value::from(value.key_text().as_ref()),
    }
}

/// A map for templates.
pub(super) fn map_to_jinja(map: &CoreMap) -> Value {
    new_dict(map.iter().map(|(key, value)| (to_jinja(key), to_jinja(value))))
}

/// A value from a template.
pub(super) fn from_jinja(value: &Value) -> Result<Core, Error> {
    convert(value, 0)
}

fn convert(value: &Value, depth: usize) -> Result<Core, Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::InvalidOperation, "the value is nested too deeply"));
    }
    Ok(match value.kind() {
        ValueKind::Undefined => return Err(Error::new(ErrorKind::UndefinedError, "the value is undefined")),
        ValueKind::None => Core::Nil,
        ValueKind::Bool => Core::Bool(value.is_true()),
        ValueKind::Number if value.is_integer() => match (i64::try_from(value.clone()), u64::try_from(value.clone())) {
            (Ok(int), _) => Core::Int(int),
            (_, Ok(int)) => Core::UInt(int),
            _ => Core::from(value.to_string()),
        },
        ValueKind::Number => Core::Float(f64::try_from(value.clone())?),
        ValueKind::Bytes => Core::from(value.as_bytes().unwrap_or_default()),
        ValueKind::Seq | ValueKind::Iterable => {
            Core::List(value.try_iter()?.map(|item| convert(&item, depth + 1)).collect::<Result<_, _>>()?)
        }
        ValueKind::Map => {
            let mut map = CoreMap::new();
            for key in value.try_iter()? {
                map.push(convert(&key, depth + 1)?, convert(&value.get_item(&key)?, depth + 1)?);
            }
            Core::Map(map)
        }
        _ => Core::from(value.to_string()),
    })
}
