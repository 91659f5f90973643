//! The module that runs a chain's steps on stock minions, as they get it: `saltutil.sync_modules` brings it.

/// The module, as the file server offers it in every environment: were it missing in one, a sync from there would remove
/// it from the minion.
pub(crate) const CHAIN_MODULE_FILE: (&str, &[u8]) = ("_modules/saltern_chain.py", include_bytes!("chain_module.py"));
