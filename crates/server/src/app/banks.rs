//! Banks: values that clients of salt-api keep here by bank and key. For those who may call `cache.store` and the like.

use super::{App, Caller};
use crate::{Error, body};
use saltern_core::access::{Invocation, Wish};
use saltern_core::value::Value;

/// The longest name of a bank or a key.
const LONGEST_NAME: usize = 200;
/// The largest value.
const LARGEST: usize = 1 << 20;
/// Most keys of a bank.
const MOST_KEYS: usize = 10_000;

impl App {
    /// Keeps a value.
    pub async fn put_in_bank(&self, caller: &Caller, bank: &str, key: &str, mut value: Value) -> Result<(), Error> {
        self.may_use_banks(caller, "cache.store")?;
        for name in [bank, key] {
            if name.is_empty() || name.len() > LONGEST_NAME {
                return Err(Error::Invalid(format!("the name of a bank or a key has 1 to {LONGEST_NAME} bytes")));
            }
        }
        if body::cut(&mut value, LARGEST) {
            return Err(Error::Invalid(format!("a value in a bank has at most {LARGEST} bytes")));
        }
        let store = &self.master.store;
        if store.from_bank(bank, key).await?.is_none() && store.keys_of_bank(bank, MOST_KEYS).await?.len() == MOST_KEYS
        {
            return Err(Error::Invalid(format!("a bank has at most {MOST_KEYS} keys; flush some")));
        }
        let audit = caller.audit("cache.store", bank, serde_json::json!({ "key": key }));
        Ok(store.put_in_bank(bank.to_owned(), key.to_owned(), body::pack(&value), audit).await?)
    }

    /// What is kept under a key.
    pub async fn from_bank(&self, caller: &Caller, bank: &str, key: &str) -> Result<Option<Value>, Error> {
        self.may_use_banks(caller, "cache.fetch")?;
        self.master.store.from_bank(bank, key).await?.map(|kept| body::unpack(&kept)).transpose()
    }

    /// The keys of a bank, in their order.
    pub async fn keys_of_bank(&self, caller: &Caller, bank: &str) -> Result<Vec<String>, Error> {
        self.may_use_banks(caller, "cache.fetch")?;
        Ok(self.master.store.keys_of_bank(bank, MOST_KEYS).await?)
    }

    /// Forgets one value, or without a key all of a bank.
    pub async fn flush_bank(&self, caller: &Caller, bank: &str, key: Option<&str>) -> Result<(), Error> {
        self.may_use_banks(caller, "cache.flush")?;
        let audit = caller.audit("cache.flush", bank, serde_json::json!({ "key": key }));
        Ok(self.master.store.flush_bank(bank.to_owned(), key.map(str::to_owned), audit).await?)
    }

    fn may_use_banks(&self, caller: &Caller, fun: &str) -> Result<(), Error> {
        self.may(caller, &Wish::Runner(Invocation::bare(fun)))
    }
}
