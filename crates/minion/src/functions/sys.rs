//! `sys.*`: what this minion can do, told from the same table that it does it by.

use super::call::Answer;
use super::{Call, Failure, Function, Param, all};
use saltern_core::target::{Glob, python_text};
use saltern_core::value::{Map, Value};
use std::collections::BTreeSet;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "sys.argspec",
        params: &[Param::Optional("module", "''")],
        doc: "Give the parameters of functions: those of a module, of one function, or of all that fit a pattern.\n\n\
              CLI Example:\n\n    saltern run '*' sys.argspec cmd.run\n",
        run: |call| call.at_once(argspec),
    },
    Function {
        name: "sys.doc",
        params: &[Param::Rest("args")],
        doc: "Give the documentation of modules, of functions, of all that fit a pattern, or of everything.\n\n\
              \
              CLI Example:\n\n    saltern run '*' sys.doc cmd.run\n",
        run: |call| call.at_once(doc),
    },
    Function {
        name: "sys.list_functions",
        params: &[Param::Rest("args"), Param::Keywords("kwargs")],
        doc: "List functions: of modules, those that fit a pattern, or all.\n\n\
              CLI Example:\n\n    saltern run '*' sys.list_functions 'file.*'\n",
        run: |call| call.at_once(list_functions),
    },
    Function {
        name: "sys.list_modules",
        params: &[Param::Rest("args")],
        doc: "List modules: all of them, or those that fit a pattern.\n\n\
              CLI Example:\n\n    saltern run '*' sys.list_modules 's*'\n",
        run: |call| call.at_once(list_modules),
    },
    Function {
        name: "sys.reload_modules",
        params: &[],
        doc: "Load functions anew: nothing to do, all of them are in the agent itself.\n\n\
              CLI Example:\n\n    saltern run '*' sys.reload_modules\n",
        run: |call| call.at_once(|_| Ok(true.into())),
    },
];

/// The functions that one argument names. A module's name means its functions, without those of `sysctl` for `sys`.
fn named<'a>(name: &'a str, is_pattern: bool) -> impl Iterator<Item = &'static Function> + 'a {
    let (pattern, module) = (Glob::new(name), name.trim_end_matches('.'));
    all().filter(move |function| {
        if is_pattern { pattern.matches(function.name) } else { function.name == name || module_of(function) == module }
    })
}

fn module_of(function: &Function) -> &'static str {
    function.name.split_once('.').map_or(function.name, |(module, _)| module)
}

fn words(call: &Call) -> Vec<String> {
    call.rest().iter().map(|word| python_text(word).into_owned()).collect()
}

fn doc(call: &Call) -> Answer {
    let words = words(call);
    let wanted: BTreeSet<(&str, &str)> = if words.is_empty() {
        all().map(|function| (function.name, function.doc)).collect()
    } else {
        let named = words.iter().flat_map(|word| named(word, word.contains('*')));
        named.map(|function| (function.name, function.doc)).collect()
    };
    Ok(Value::map(wanted).into())
}

fn list_functions(call: &Call) -> Answer {
    let words = words(call);
    let names: BTreeSet<&str> = if words.is_empty() {
        all().map(|function| function.name).collect()
    } else {
        words.iter().flat_map(|word| named(word, word.contains(['*', '.']))).map(|function| function.name).collect()
    };
    Ok(Value::list(names).into())
}

fn list_modules(call: &Call) -> Answer {
    let words = words(call);
    let names: BTreeSet<&str> = if words.is_empty() {
        all().map(module_of).collect()
    } else {
        let fits = |word: &String, function: &Function| {
            if word.contains('*') { Glob::new(word).matches(function.name) } else { module_of(function) == word }
        };
        all().filter(|function| words.iter().any(|word| fits(word, function))).map(module_of).collect()
    };
    Ok(Value::list(names).into())
}

fn argspec(call: &Call) -> Answer {
    let name = call.opt_text("module")?.unwrap_or_default();
    let wanted = named(&name, name.contains(['*', '.']));
    let specs: Result<Map, Failure> = wanted.map(|function| Ok((function.name.into(), spec(function)?))).collect();
    Ok(specs?.into())
}

fn spec(function: &Function) -> Result<Value, Failure> {
    let (mut args, mut defaults, mut has_rest, mut has_keywords) = (Vec::new(), Vec::new(), false, false);
    for param in function.params {
        match param {
            Param::Required(name) => args.push(Value::from(*name)),
            Param::Optional(name, written) => {
                args.push(Value::from(*name));
                defaults.push(default(written));
            }
            Param::Rest(_) => has_rest = true,
            Param::Keywords(_) => has_keywords = true,
        }
    }
    let list = |items: Vec<Value>| (!items.is_empty()).then_some(items);
    let flag = |is_so: bool| is_so.then_some(true);
    Ok(Value::map([
        ("args", Value::from(list(args))),
        ("defaults", list(defaults).into()),
        ("varargs", flag(has_rest).into()),
        ("kwargs", flag(has_keywords).into()),
    ]))
}

/// A default as it is written in Python.
fn default(written: &str) -> Value {
    match written {
        "None" => Value::Nil,
        "True" => true.into(),
        "False" => false.into(),
        _ => match written.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
            Some(text) => text.into(),
            None => saltern_render::yaml::load(written).unwrap_or_else(|_| written.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::testing::call;
    use saltern_render::yaml::load;

    #[tokio::test]
    async fn functions_are_listed_by_module_pattern_or_altogether() {
        let functions = call("sys.list_functions", &["sys".into()], &[]).await;
        let expected = ["sys.argspec", "sys.doc", "sys.list_functions", "sys.list_modules", "sys.reload_modules"];
        assert_eq!(functions, Value::list(expected));
        assert_eq!(call("sys.list_functions", &["sys.*doc".into()], &[]).await, Value::list(["sys.doc"]));
        assert_eq!(call("sys.list_functions", &["sys.doc".into()], &[]).await, Value::list(["sys.doc"]));
        let everything = call("sys.list_functions", &[], &[]).await;
        assert_eq!(everything.as_list().unwrap().len(), all().count());
        assert_eq!(call("sys.list_modules", &["hash*".into()], &[]).await, Value::list(["hashutil"]));
        assert_eq!(call("sys.list_modules", &["sys".into(), "nope".into()], &[]).await, Value::list(["sys"]));
    }

    #[tokio::test]
    async fn documentation_is_given_by_name() {
        let docs = call("sys.doc", &["test.ping".into()], &[]).await;
        assert!(docs.get("test.ping").and_then(Value::as_str).is_some_and(|doc| doc.contains("CLI Example:")));
        assert_eq!(docs.as_map().unwrap().len(), 1);
        assert_eq!(call("sys.doc", &["sys".into()], &[]).await.as_map().unwrap().len(), 5);
        assert_eq!(call("sys.doc", &[], &[]).await.as_map().unwrap().len(), all().count());
    }

    /// Shapes of stock Salt.
    #[tokio::test]
    async fn parameters_are_told_with_their_defaults() {
        let expected = "{cmd.which: {args: [cmd], defaults: null, varargs: null, kwargs: null}}";
        assert_eq!(call("sys.argspec", &["cmd.which".into()], &[]).await, load(expected).unwrap());
        let expected = "{test.arg: {args: null, defaults: null, varargs: true, kwargs: true}}";
        assert_eq!(call("sys.argspec", &["test.arg".into()], &[]).await, load(expected).unwrap());
        let expected = "{mine.get: {args: [tgt, fun, tgt_type, exclude_minion], defaults: [glob, false], \
                        varargs: null, kwargs: null}}";
        assert_eq!(call("sys.argspec", &["mine.get".into()], &[]).await, load(expected).unwrap());
    }

    #[test]
    fn required_parameters_stand_before_optional_ones() {
        for function in all() {
            let is_optional = |param: &Param| matches!(param, Param::Optional(..));
            let named =
                function.params.iter().filter(|param| matches!(param, Param::Required(_) | Param::Optional(..)));
            assert!(named.is_sorted_by_key(is_optional), "{}", function.name);
        }
    }
}
