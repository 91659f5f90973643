//! Salt's filters, tests and globals over data; those over text are in `texts` and `regexes`.

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use saltern_core::value::Value as Core;

use super::args::Args;
use super::functions::traverse;
use super::json::{Style, dumps};
use super::value::{from_jinja, list_of, new_dict, new_list, to_jinja};
use super::{regexes, texts};
use crate::yaml;

pub(super) fn install(env: &mut Environment<'_>) {
    texts::install(env);
    regexes::install(env);

    env.add_function("_percent", percent);
    env.add_function("raise", |problem: &str| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, problem.to_owned()))
    });

    env.add_filter("yaml", format_yaml);
    env.add_filter("json", format_json);
    env.add_filter("tojson", to_json);
    env.add_filter("python", |value: Value| format!("{value:?}"));
    env.add_filter("dict_to_sls_yaml_params", sls_params);
    env.add_filter("load_yaml", load_yaml);
    env.add_filter("load_json", load_json);
    env.add_filter("load_text", |text: String| text);

    env.add_filter("list", |value: Value| items(&text_as_list(value)).map(new_list));
    env.add_filter("sort", |state: &State<'_, '_>, value: Value, kwargs: Kwargs| {
        minijinja::filters::sort(state, value, kwargs).and_then(|sorted| list_of(&sorted))
    });
    env.add_filter("map", |state: &mut State<'_, '_>, value: Value, args: Rest<ValueOrKwargs>| {
        minijinja::filters::map(state, value, args).map(new_list)
    });
    env.add_filter("unique", |value: Value| Ok::<_, Error>(unique(items(&value)?)));
    env.add_filter("union", |a: Value, b: Value| Ok::<_, Error>(unique(items(&a)?.into_iter().chain(items(&b)?))));
    env.add_filter("intersect", |a: Value, b: Value| {
        let (a, b) = (items(&a)?, items(&b)?);
        Ok::<_, Error>(unique(a.into_iter().filter(|item| b.contains(item))))
    });
    env.add_filter("difference", |a: Value, b: Value| {
        let (a, b) = (items(&a)?, items(&b)?);
        Ok::<_, Error>(unique(a.into_iter().filter(|item| !b.contains(item))))
    });
    env.add_filter("symmetric_difference", |a: Value, b: Value| {
        let (a, b) = (items(&a)?, items(&b)?);
        Ok::<_, Error>(unique(without(&a, &b).into_iter().chain(without(&b, &a))))
    });
    env.add_filter("int", |value: Value, default: Option<Value>| {
        int(&value).or(default).unwrap_or_else(|| Value::from(0))
    });
    env.add_filter("float", |value: Value, default: Option<Value>| {
        float(&value).map(Value::from).or(default).unwrap_or_else(|| Value::from(0.0))
    });
    env.add_filter("avg", average);
    env.add_filter("flatten", |value: Value, args: Rest<ValueOrKwargs>| flatten_call(&value, &args.into_values()));
    env.add_filter("traverse", |value: Value, key: Value, default: Option<Value>, delimiter: Option<&str>| {
        let found = traverse(&value, &key.to_string(), delimiter.unwrap_or(":"));
        found.or(default).unwrap_or_else(|| Value::from(()))
    });
    env.add_filter("sequence", sequence);
    env.add_filter("skip", |_: Value| "");
    env.add_filter("is_list", |value: Value| is_list(&value));
    env.add_filter("is_iter", |value: Value| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map)
    });
    env.add_filter("substring_in_list", |text: &str, list: Value| -> Result<bool, Error> {
        Ok(list.try_iter()?.any(|item| item.as_str().is_some_and(|item| item.contains(text))))
    });
    env.add_filter("sorted_ignorecase", sorted_ignorecase);
    env.add_filter("exactly_one_true", |value: Value| exactly_n_true(&value, 1));
    env.add_filter("exactly_n_true", |value: Value, amount: Option<usize>| exactly_n_true(&value, amount.unwrap_or(1)));
    env.add_filter("compare_lists", |old: Value, new: Value| compare_lists(&old, &new));
    env.add_filter("compare_dicts", |old: Value, new: Value| compare_dicts(&old, &new));
    env.add_filter("to_entries", to_entries);
    env.add_filter("from_entries", from_entries);

    env.add_test("list", |value: Value| is_list(&value));
    env.add_test("equalto", |a: Value, b: Value| a == b);
}

/// `a % b`: formatting if `a` is text, the remainder if they are numbers.
fn percent(left: Value, right: Value) -> Result<Value, Error> {
    if let Some(text) = left.as_str() {
        let values = if right.is_tuple() { items(&right)? } else { vec![right] };
        return format(FormatStyle::Printf, text, &values).map(Value::from);
    }
    let unfit = || {
        let problem = format!("tried to use % operator on unsupported types {} and {}", left.kind(), right.kind());
        Error::new(ErrorKind::InvalidOperation, problem)
    };
    if let (true, true) = (left.is_integer(), right.is_integer()) {
        let (a, b) = (i128::try_from(left.clone())?, i128::try_from(right.clone())?);
        let floor = a.checked_rem_euclid(b).map(|rest| if b < 0 && rest != 0 { rest + b } else { rest });
        return floor.map(Value::from).ok_or_else(unfit);
    }
    match (f64::try_from(left.clone()), f64::try_from(right.clone())) {
        (Ok(a), Ok(b)) if b != 0.0 => Ok(Value::from(a - b * (a / b).floor())),
        _ => Err(unfit()),
    }
}

/// The items of a value; unlike iteration alone, not those of something undefined.
fn items(value: &Value) -> Result<Vec<Value>, Error> {
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "the value is undefined"));
    }
    Ok(value.try_iter()?.collect())
}

fn without(these: &[Value], those: &[Value]) -> Vec<Value> {
    these.iter().filter(|item| !those.contains(item)).cloned().collect()
}

/// Python's `list` takes text apart into characters.
fn text_as_list(value: Value) -> Value {
    match value.as_str() {
        Some(text) => Value::from(text.chars().map(|c| Value::from(c.to_string())).collect::<Vec<_>>()),
        None => value,
    }
}

fn unique(values: impl IntoIterator<Item = Value>) -> Value {
    let mut kept: Vec<Value> = Vec::new();
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    new_list(kept)
}

fn format_yaml(value: Value, args: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let args = args.into_values();
    let args = Args::new(&args);
    let is_flow = args.get(0, "flow_style").is_none_or(|flow| flow.is_true());
    let value = from_jinja(&value)?;
    let text = if is_flow { yaml::to_flow(&value) } else { yaml::to_yaml(&value) };
    Ok(text.trim().to_owned())
}

fn sls_params(value: Value) -> Result<String, Error> {
    let Core::Map(map) = from_jinja(&value)? else {
        return Err(Error::new(ErrorKind::InvalidOperation, "dict_to_sls_yaml_params works with a dictionary"));
    };
    let params = map.into_iter().map(|(key, value)| Core::Map([(key, value)].into_iter().collect())).collect();
    Ok(yaml::to_yaml(&Core::List(params)).trim().to_owned())
}

fn format_json(value: Value, args: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let args = args.into_values();
    let args = Args::new(&args);
    let sort_keys = args.get(0, "sort_keys").is_none_or(|sort| sort.is_true());
    let indent = args.get(1, "indent").and_then(|indent| indent.as_usize()).map(|indent| indent.min(16));
    Ok(dumps(&from_jinja(&value)?, Style { sort_keys, indent, ascii: false }))
}

/// Jinja's `tojson`, which is safe inside of HTML as well.
fn to_json(value: Value, args: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let args = args.into_values();
    let args = Args::new(&args);
    let indent = args.get(0, "indent").and_then(|indent| indent.as_usize()).map(|indent| indent.min(16));
    let style = Style { sort_keys: args.flag(usize::MAX, "sort_keys"), indent, ascii: true };
    let text = dumps(&from_jinja(&value)?, style);
    Ok(text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026").replace('\'', "\\u0027"))
}

fn load_yaml(text: String) -> Result<Value, Error> {
    let loaded = yaml::load(&text);
    let problem = |err| Error::new(ErrorKind::InvalidOperation, format!("error loading yaml: {err}"));
    loaded.map(|value| to_jinja(&value)).map_err(problem)
}

fn load_json(text: String) -> Result<Value, Error> {
    let loaded = serde_json::from_str::<Core>(&text);
    let problem = |err| Error::new(ErrorKind::InvalidOperation, format!("unable to load json: {err}"));
    loaded.map(|value| to_jinja(&value)).map_err(problem)
}

fn sequence(value: Value) -> Value {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => value,
        _ => new_list(vec![value]),
    }
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) && !value.is_tuple()
}

/// Jinja2's `int`: text is read as an integer, then as a float that is cut; anything else is nothing.
fn int(value: &Value) -> Option<Value> {
    if value.is_integer() {
        return Some(value.clone());
    }
    let text = value.as_str().map(|text| text.trim().replace('_', ""));
    match text.as_ref().and_then(|text| text.parse::<i64>().ok()) {
        Some(int) => Some(Value::from(int)),
        None => float(value).filter(|float| float.is_finite()).map(|float| Value::from(float.trunc() as i64)),
    }
}

fn float(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some(text) => text.trim().replace('_', "").parse().ok(),
        None if value.kind() == ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        None => f64::try_from(value.clone()).ok(),
    }
}

fn average(value: Value) -> Result<f64, Error> {
    if value.kind() == ValueKind::Number {
        return f64::try_from(value);
    }
    let numbers = items(&value)?.into_iter().map(f64::try_from).collect::<Result<Vec<_>, _>>()?;
    if numbers.is_empty() {
        return Err(Error::new(ErrorKind::InvalidOperation, "no average of nothing"));
    }
    Ok(numbers.iter().sum::<f64>() / numbers.len() as f64)
}

fn flatten_call(value: &Value, args: &[Value]) -> Result<Value, Error> {
    let args = Args::new(args);
    let levels = args.get(0, "levels").and_then(|levels| levels.as_usize()).unwrap_or(64).min(64);
    let keeps_none = args.get(1, "preserve_nulls").is_some_and(|keep| keep.is_true());
    let mut flat = Vec::new();
    flatten(value, levels, keeps_none, &mut flat)?;
    Ok(new_list(flat))
}

fn flatten(value: &Value, levels: usize, keeps_none: bool, out: &mut Vec<Value>) -> Result<(), Error> {
    for item in value.try_iter()? {
        match item.kind() {
            ValueKind::None if !keeps_none => {}
            ValueKind::Seq | ValueKind::Iterable if levels > 0 => flatten(&item, levels - 1, keeps_none, out)?,
            _ => out.push(item),
        }
    }
    Ok(())
}

fn sorted_ignorecase(value: Value) -> Result<Value, Error> {
    let mut items = items(&value)?;
    items.sort_by_key(|item| item.to_string().to_lowercase());
    Ok(new_list(items))
}

fn exactly_n_true(value: &Value, amount: usize) -> Result<bool, Error> {
    Ok(items(value)?.iter().filter(|item| item.is_true()).count() == amount)
}

fn compare_lists(old: &Value, new: &Value) -> Result<Value, Error> {
    let (old, new) = (items(old)?, items(new)?);
    let mut changes = Vec::new();
    for (name, list) in [("new", without(&new, &old)), ("old", without(&old, &new))] {
        if !list.is_empty() {
            changes.push((Value::from(name), new_list(list)));
        }
    }
    Ok(new_dict(changes))
}

fn compare_dicts(old: &Value, new: &Value) -> Result<Value, Error> {
    let mut keys = items(old)?;
    keys.extend(new.try_iter()?.filter(|key| !keys.contains(key)).collect::<Vec<_>>());
    let entry = |of: &Value, key: &Value| of.get_item(key).ok().filter(|value| !value.is_undefined());
    let changed = keys.into_iter().filter_map(|key| {
        let (before, after) = (entry(old, &key), entry(new, &key));
        let shown = |value: Option<Value>| value.unwrap_or_else(|| Value::from(""));
        (before != after)
            .then(|| (key, new_dict([(Value::from("old"), shown(before)), (Value::from("new"), shown(after))])))
    });
    Ok(new_dict(changed.collect::<Vec<_>>()))
}

fn to_entries(value: Value) -> Result<Value, Error> {
    let entry = |key: Value, value: Value| new_dict([(Value::from("key"), key), (Value::from("value"), value)]);
    let entries = items(&value)?.into_iter().enumerate().map(|(n, item)| match value.kind() {
        ValueKind::Map => value.get_item(&item).map(|of| entry(item, of)),
        _ => Ok(entry(Value::from(n), item)),
    });
    Ok(new_list(entries.collect::<Result<_, _>>()?))
}

fn from_entries(value: Value) -> Result<Value, Error> {
    let mut found = Vec::new();
    for entry in items(&value)? {
        let field =
            |names: &[&str]| names.iter().find_map(|name| entry.get_attr(name).ok().filter(|v| !v.is_undefined()));
        let key = field(&["key", "Key", "name", "Name"]).unwrap_or_else(|| Value::from(()));
        found.push((key, field(&["value", "Value"]).unwrap_or_else(|| Value::from(()))));
    }
    Ok(new_dict(found))
}
