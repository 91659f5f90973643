//! `cache.*`: what the server remembers of minions, within the caller's sight.
//!
//! The banks `minions` (ids) and `minions/<id>` (`data` and `mine`) are a view of that; others hold what was stored in them.

use crate::salt::function::{Call, Function, Outcome, Trouble};
use saltern_core::ids::MinionId;
use saltern_core::value::{Map, Value};
use saltern_server::Class;
use saltern_server::app::{Cached, MinionEntry};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "cache.grains",
        params: "tgt, tgt_type=glob",
        doc: "Shows the grains that minions last sent.",
        secret: false,
        run: |call| Box::pin(grains(call)),
    },
    Function {
        name: "cache.pillar",
        params: "tgt, tgt_type=glob",
        doc: "Shows the pillar of minions.",
        secret: false,
        run: |call| Box::pin(pillar(call)),
    },
    Function {
        name: "cache.mine",
        params: "tgt, tgt_type=glob",
        doc: "Shows what minions offer in the mine.",
        secret: false,
        run: |call| Box::pin(mine(call)),
    },
    Function {
        name: "cache.list",
        params: "bank, cachedir=None",
        doc: "Lists the keys of a bank: `minions`, `minions/<id>`, or one that was stored to.",
        secret: false,
        run: |call| Box::pin(list(call)),
    },
    Function {
        name: "cache.fetch",
        params: "bank, key, cachedir=None",
        doc: "Shows what is under a key of a bank: `data` or `mine` of `minions/<id>`, or what was stored.",
        secret: false,
        run: |call| Box::pin(fetch(call)),
    },
    Function {
        name: "cache.store",
        params: "bank, key, data, cachedir=None",
        doc: "Keeps a value under a key of a bank of one's own.",
        secret: false,
        run: |call| Box::pin(store(call)),
    },
    Function {
        name: "cache.flush",
        params: "bank, key=None, cachedir=None",
        doc: "Forgets what was stored under a key of a bank, or all of the bank.",
        secret: false,
        run: |call| Box::pin(flush(call)),
    },
    Function {
        name: "cache.clear_grains",
        params: "tgt=None, tgt_type=glob",
        doc: "Forgets grains; minions send them again.",
        secret: false,
        run: |call| Box::pin(clear(call, &[Cached::Grains])),
    },
    Function {
        name: "cache.clear_pillar",
        params: "tgt=None, tgt_type=glob",
        doc: "Forgets the pillar that was last made for minions.",
        secret: false,
        run: |call| Box::pin(clear(call, &[Cached::Pillar])),
    },
    Function {
        name: "cache.clear_mine",
        params: "tgt=None, tgt_type=glob",
        doc: "Forgets what minions offer in the mine.",
        secret: false,
        run: |call| Box::pin(clear(call, &[Cached::Mine])),
    },
    Function {
        name: "cache.clear_all",
        params: "tgt=None, tgt_type=glob",
        doc: "Forgets grains, pillar and mine of minions.",
        secret: false,
        run: |call| Box::pin(clear(call, &[Cached::Grains, Cached::Pillar, Cached::Mine])),
    },
];

/// The minions that are meant; none where nobody matches.
async fn meant(call: &Call) -> Result<Vec<MinionEntry>, Trouble> {
    let Some(target) = call.given.target(None)? else { return Ok(Vec::new()) };
    match call.salt.app.minions(&call.caller, Some(&target)).await {
        Ok(minions) => Ok(minions),
        Err(error) if error.class() == Class::NotFound => Ok(Vec::new()),
        Err(error) => Err(call.trouble(error)),
    }
}

fn grains_of(call: &Call, minion: &MinionId) -> Value {
    let detail = call.salt.app.minion(&call.caller, minion.as_str()).ok();
    detail.and_then(|detail| detail.grains).unwrap_or_else(|| Value::Map(Map::new()))
}

async fn grains(call: Call) -> Outcome {
    let mut all = Map::new();
    for minion in meant(&call).await? {
        all.push(&minion.id, grains_of(&call, &minion.id));
    }
    Ok(all.into())
}

async fn pillar(call: Call) -> Outcome {
    let mut all = Map::new();
    for minion in meant(&call).await? {
        all.push(&minion.id, pillar_of(&call, &minion.id).await?);
    }
    Ok(all.into())
}

async fn pillar_of(call: &Call, minion: &MinionId) -> Outcome {
    call.salt.app.pillar(&call.caller, minion).await.map_err(|error| call.trouble(error))
}

async fn mine(call: Call) -> Outcome {
    let mut all = Map::new();
    for minion in meant(&call).await? {
        all.push(&minion.id, mine_of(&call, &minion.id).await?);
    }
    Ok(all.into())
}

async fn mine_of(call: &Call, minion: &MinionId) -> Outcome {
    let offered = call.salt.app.mine_of(&call.caller, minion).await;
    offered.map(Value::Map).map_err(|error| call.trouble(error))
}

/// A bank of one's own; nothing for those that are a view of the minions.
fn own_bank(bank: &str) -> Option<&str> {
    let bank = bank.trim_matches('/');
    (bank != "minions" && !bank.starts_with("minions/")).then_some(bank)
}

async fn store(call: Call) -> Outcome {
    let (bank, key) = (call.given.required("bank")?, call.given.required("key")?);
    let data = call.given.get("data").cloned().unwrap_or_default();
    let bank = own_bank(&bank).ok_or_else(|| Trouble::Raised("the bank `minions` is the server's own".into()))?;
    let stored = call.salt.app.put_in_bank(&call.caller, bank, &key, data).await;
    stored.map(|()| Value::Nil).map_err(|error| call.trouble(error))
}

async fn flush(call: Call) -> Outcome {
    let (bank, key) = (call.given.required("bank")?, call.given.text("key")?);
    let bank = own_bank(&bank).ok_or_else(|| Trouble::Raised("the bank `minions` is the server's own".into()))?;
    let flushed = call.salt.app.flush_bank(&call.caller, bank, key.as_deref()).await;
    flushed.map(|()| true.into()).map_err(|error| call.trouble(error))
}

async fn list(call: Call) -> Outcome {
    let bank = call.given.required("bank")?;
    if let Some(bank) = own_bank(&bank) {
        let keys = call.salt.app.keys_of_bank(&call.caller, bank).await.map_err(|error| call.trouble(error))?;
        return Ok(Value::list(keys));
    }
    let minions = call.salt.app.minions(&call.caller, None).await.map_err(|error| call.trouble(error))?;
    Ok(match bank.trim_matches('/').strip_prefix("minions") {
        Some("") => Value::List(minions.iter().map(|minion| Value::from(&minion.id)).collect()),
        Some(rest) if minions.iter().any(|minion| rest.strip_prefix('/') == Some(minion.id.as_str())) => {
            Value::list(["data", "mine"])
        }
        _ => Value::List(Vec::new()),
    })
}

async fn fetch(call: Call) -> Outcome {
    let (bank, key) = (call.given.required("bank")?, call.given.required("key")?);
    let nothing = || Ok(Value::Map(Map::new()));
    if let Some(bank) = own_bank(&bank) {
        let kept = call.salt.app.from_bank(&call.caller, bank, &key).await.map_err(|error| call.trouble(error))?;
        return kept.map_or_else(nothing, Ok);
    }
    let Some(minion) = bank.trim_matches('/').strip_prefix("minions/").and_then(|id| MinionId::new(id).ok()) else {
        return nothing();
    };
    if call.salt.app.minion(&call.caller, minion.as_str()).is_err() {
        return nothing();
    }
    match key.as_str() {
        "mine" => mine_of(&call, &minion).await,
        "data" => {
            let pillar = pillar_of(&call, &minion).await?;
            Ok(Value::map([("grains", grains_of(&call, &minion)), ("pillar", pillar)]))
        }
        _ => nothing(),
    }
}

async fn clear(call: Call, what: &'static [Cached]) -> Outcome {
    // Whoever names nobody means nobody, as with Salt.
    if call.given.get("tgt").is_none() {
        return Ok(true.into());
    }
    if let Some(target) = call.given.target(None)? {
        match call.salt.app.forget_cached(&call.caller, &target, what).await {
            Err(error) if error.class() != Class::NotFound => return Err(call.trouble(error)),
            _ => {}
        }
    }
    Ok(true.into())
}
