//! PostgreSQL: a pool of connections, statements prepared once each, many rows sent in one pipeline.

use super::{Location, Options, Param, Row};
use crate::error::chain;
use crate::{Error, Result, migrate};
use deadpool_postgres::{Client, GenericClient, Manager, ManagerConfig, Pool, RecyclingMethod, Transaction};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio_postgres::types::{ToSql, Type};

/// Connects, or says in one sentence why not.
pub(super) async fn open(url: &str, options: &Options) -> Result<Pool> {
    let place = Location::Postgres(url.to_owned()).describe();
    let failed = |reason: String| Error::Open { place: place.clone(), reason };
    let mut config: tokio_postgres::Config = url.parse().map_err(|error| failed(chain(&error)))?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(10));
    }
    config.application_name("saltern");
    let manager =
        Manager::from_config(config, tokio_postgres::NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
    let pool =
        Pool::builder(manager).max_size(options.readers + 1).build().map_err(|error| failed(error.to_string()))?;
    let mut client = pool.get().await.map_err(|error| failed(chain(&error)))?;
    migrate::postgres(&mut client).await?;
    drop(client);
    Ok(pool)
}

pub(super) async fn query(client: &Client, sql: &'static str, params: &[Param]) -> Result<Vec<Row>> {
    let statement = client.prepare_cached(&dollars(sql)).await?;
    let rows = GenericClient::query(client, &statement, &refs(params)).await?;
    rows.iter().map(|row| read(sql, row)).collect()
}

pub(super) async fn query_tx(tx: &Transaction<'_>, sql: &'static str, params: &[Param]) -> Result<Vec<Row>> {
    let statement = tx.prepare_cached(&dollars(sql)).await?;
    let rows = GenericClient::query(tx, &statement, &refs(params)).await?;
    rows.iter().map(|row| read(sql, row)).collect()
}

pub(super) async fn execute(tx: &Transaction<'_>, sql: &'static str, params: &[Param]) -> Result<u64> {
    let statement = tx.prepare_cached(&dollars(sql)).await?;
    Ok(GenericClient::execute(tx, &statement, &refs(params)).await?)
}

/// All rows in one pipeline: the statements are sent without waiting for each other's answers.
pub(super) async fn execute_many(tx: &Transaction<'_>, sql: &'static str, rows: &[Vec<Param>]) -> Result<Vec<u64>> {
    let statement = tx.prepare_cached(&dollars(sql)).await?;
    let sent = rows.iter().map(async |params| GenericClient::execute(tx, &statement, &refs(params)).await);
    Ok(futures_util::future::try_join_all(sent).await?)
}

fn refs(params: &[Param]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect()
}

fn read(sql: &'static str, row: &tokio_postgres::Row) -> Result<Row> {
    let cells = row.columns().iter().enumerate().map(|(column, kind)| {
        Ok(match *kind.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(column)?.map_or(Param::Null, Param::Int),
            Type::INT4 => row.try_get::<_, Option<i32>>(column)?.map_or(Param::Null, |int| Param::Int(int.into())),
            Type::TEXT => row.try_get::<_, Option<String>>(column)?.map_or(Param::Null, Param::Text),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(column)?.map_or(Param::Null, Param::Blob),
            _ => return Err(Error::Shape { what: sql, column }),
        })
    });
    Ok(Row(cells.collect::<Result<_>>()?))
}

/// The statement with `$1` for `?1`, turned once per statement. Our statements have no `?` but for parameters.
fn dollars(sql: &'static str) -> Cow<'static, str> {
    static TURNED: OnceLock<RwLock<HashMap<&'static str, &'static str>>> = OnceLock::new();
    if !sql.contains('?') {
        return Cow::Borrowed(sql);
    }
    let turned = TURNED.get_or_init(RwLock::default);
    if let Some(text) = turned.read().unwrap_or_else(PoisonError::into_inner).get(sql) {
        return Cow::Borrowed(text);
    }
    // Statements are constants of this crate, so what is leaked here is bounded by their number.
    let text: &'static str = sql.replace('?', "$").leak();
    turned.write().unwrap_or_else(PoisonError::into_inner).insert(sql, text);
    Cow::Borrowed(text)
}
