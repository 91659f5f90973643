//! A minion without a master, for tests of functions.

use super::{Call, Context, Failure, Outcome, find};
use crate::jobs::JobHandle;
use saltern_core::value::{Map, Value};
use std::path::Path;
use std::sync::{Arc, RwLock};
use tempfile::TempDir;

/// A minion named `m1` with a data directory of its own, gone when it is dropped.
pub(crate) struct Bench {
    dir: TempDir,
    pub(crate) context: Context,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Map::new(), Map::new(), Map::new())
    }

    /// With a configuration, grains and pillar.
    pub(crate) fn with(opts: Map, grains: Map, pillar: Map) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let context = Context {
            id: "m1".into(),
            opts: Arc::new(opts),
            data_dir: Arc::new(dir.path().join("data")),
            grains: Arc::new(RwLock::new(Arc::new(grains))),
            pillar: Arc::new(RwLock::new(Arc::new(pillar))),
            link: None,
            job: JobHandle::default(),
        };
        Self { dir, context }
    }

    /// A place for files.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The path of a file in that place, as an argument.
    pub(crate) fn at(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Calls a function.
    pub(crate) async fn try_call(
        &self,
        name: &str,
        args: &[Value],
        kwargs: &[(&str, Value)],
    ) -> Result<Outcome, Failure> {
        let function = find(name).unwrap_or_else(|| panic!("there is no {name}"));
        let kwargs = kwargs.iter().map(|(key, value)| (Value::from(*key), value.clone())).collect();
        (function.run)(Call::bind(function, self.context.clone(), args.to_vec(), kwargs)?).await
    }

    /// Calls a function that is expected to work; its value.
    pub(crate) async fn call(&self, name: &str, args: &[Value], kwargs: &[(&str, Value)]) -> Value {
        self.try_call(name, args, kwargs).await.unwrap_or_else(|failure| panic!("{name}: {failure:?}")).value
    }

    /// Calls a function that is expected to fail; the text a client sees.
    pub(crate) async fn fail(&self, name: &str, args: &[Value], kwargs: &[(&str, Value)]) -> String {
        match self.try_call(name, args, kwargs).await {
            Ok(outcome) => panic!("{name} worked: {outcome:?}"),
            Err(failure) => failure.into_outcome(name).value.as_str().unwrap().to_owned(),
        }
    }
}

/// Calls a function on a minion that knows nothing; its value.
pub(crate) async fn call(name: &str, args: &[Value], kwargs: &[(&str, Value)]) -> Value {
    Bench::new().call(name, args, kwargs).await
}

/// A map with text keys.
pub(crate) fn map<const N: usize>(entries: [(&str, Value); N]) -> Map {
    entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect()
}
