//! PostgreSQL: a pool of connections, statements prepared once each, many rows sent in one pipeline.

use super::{Location, Options, Param, Row, tls};
use crate::{Error, Result, migrate};
use deadpool_postgres::{Client, GenericClient, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Transaction};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio_postgres::types::{ToSql, Type};

/// How long connecting may take, unless the address says otherwise (`connect_timeout`).
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the server's host may leave what was sent unacknowledged, unless the address says otherwise.
const SILENCE: Duration = Duration::from_secs(30);

/// Connects, or says in one sentence why not. Returns the pool that reads and the one connection that writes: it has a pool
/// of its own, so that it is replaced when it breaks and never has to wait for a reader.
pub(super) async fn open(url: &str, options: &Options) -> Result<(Pool, Pool)> {
    let place = Location::Postgres(url.to_owned()).describe();
    connect(url, options).await.map_err(|error| error.while_opening(place))
}

async fn connect(url: &str, options: &Options) -> Result<(Pool, Pool)> {
    let (url, tls) = tls::from_url(url)?;
    let mut config: tokio_postgres::Config = url.parse()?;
    let patience = *config.get_connect_timeout().unwrap_or(&PATIENCE);
    config.connect_timeout(patience);
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    if config.get_application_name().is_none() {
        config.application_name("saltern");
    }
    let pool = |size| {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        Pool::builder(Manager::from_config(config.clone(), tls.clone(), recycling))
            .max_size(size)
            .runtime(Runtime::Tokio1)
            // Covers what `connect_timeout` does not: a server that takes the connection and then says nothing.
            .create_timeout(Some(patience))
            .build()
            .map_err(|error| Error::Database(error.to_string()))
    };
    let (readers, writer) = (pool(options.readers.max(1))?, pool(1)?);
    migrate::postgres(&mut writer.get().await?).await?;
    Ok((readers, writer))
}

/// Takes a broken connection out of its pool, which may not have noticed yet.
pub(super) fn discard(client: Client) {
    drop(Client::take(client));
}

/// Reads; again on another connection if one is lost: those in the pool may have broken while nobody used them.
pub(super) async fn read_pooled(pool: &Pool, sql: &'static str, params: &[Param]) -> Result<Vec<Row>> {
    for _ in 0..pool.status().max_size {
        let client = pool.get().await?;
        match query(&client, sql, params).await {
            Err(Error::Unreachable(_)) => discard(client),
            answer => return answer,
        }
    }
    query(&pool.get().await?, sql, params).await
}

async fn query(client: &Client, sql: &'static str, params: &[Param]) -> Result<Vec<Row>> {
    let statement = client.prepare_cached(&dollars(sql)).await?;
    let rows = GenericClient::query(client, &statement, &refs(params)).await?;
    rows.iter().map(|row| read(sql, row)).collect()
}

pub(crate) async fn query_tx(tx: &Transaction<'_>, sql: &'static str, params: &[Param]) -> Result<Vec<Row>> {
    let statement = tx.prepare_cached(&dollars(sql)).await?;
    let rows = GenericClient::query(tx, &statement, &refs(params)).await?;
    rows.iter().map(|row| read(sql, row)).collect()
}

pub(super) async fn execute(tx: &Transaction<'_>, sql: &'static str, params: &[Param]) -> Result<u64> {
    let statement = tx.prepare_cached(&dollars(sql)).await?;
    Ok(GenericClient::execute(tx, &statement, &refs(params)).await?)
}

/// All rows in one pipeline: the statements are sent without waiting for each other's answers.
pub(crate) async fn execute_many(tx: &Transaction<'_>, sql: &'static str, rows: &[Vec<Param>]) -> Result<Vec<u64>> {
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
