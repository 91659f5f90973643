//! Parameters and rows: integers, text, bytes and null, the same for both databases.

use crate::{Error, Result};
use bytes::BytesMut;
use saltern_core::ids::{Jid, MinionId};
use saltern_core::time::Timestamp;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// One value given to a statement or found in a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Param {
    #[default]
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

/// One row of an answer.
#[derive(Debug)]
pub(crate) struct Row(pub(crate) Vec<Param>);

macro_rules! params {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Param::from($value)),*] };
}
pub(crate) use params;

impl Row {
    fn shape<T>(column: usize) -> Result<T> {
        Err(Error::Shape { what: "a row", column })
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64> {
        self.opt_int(column)?.map_or_else(|| Self::shape(column), Ok)
    }

    pub(crate) fn opt_int(&self, column: usize) -> Result<Option<i64>> {
        match self.0.get(column) {
            Some(Param::Int(int)) => Ok(Some(*int)),
            Some(Param::Null) => Ok(None),
            _ => Self::shape(column),
        }
    }

    pub(crate) fn flag(&self, column: usize) -> Result<bool> {
        Ok(self.int(column)? != 0)
    }

    pub(crate) fn opt_flag(&self, column: usize) -> Result<Option<bool>> {
        Ok(self.opt_int(column)?.map(|int| int != 0))
    }

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp> {
        self.int(column).map(Timestamp)
    }

    pub(crate) fn opt_time(&self, column: usize) -> Result<Option<Timestamp>> {
        Ok(self.opt_int(column)?.map(Timestamp))
    }

    pub(crate) fn text(&mut self, column: usize) -> Result<String> {
        self.opt_text(column)?.map_or_else(|| Self::shape(column), Ok)
    }

    pub(crate) fn opt_text(&mut self, column: usize) -> Result<Option<String>> {
        match self.0.get_mut(column).map(std::mem::take) {
            Some(Param::Text(text)) => Ok(Some(text)),
            Some(Param::Null) => Ok(None),
            _ => Self::shape(column),
        }
    }

    pub(crate) fn blob(&mut self, column: usize) -> Result<Vec<u8>> {
        match self.0.get_mut(column).map(std::mem::take) {
            Some(Param::Blob(blob)) => Ok(blob),
            _ => Self::shape(column),
        }
    }

    /// A hash. One of another length was not written by us; it reads as zeros, which no text has.
    pub(crate) fn hash(&mut self, column: usize) -> Result<[u8; 32]> {
        Ok(self.blob(column)?.try_into().unwrap_or_default())
    }

    pub(crate) fn jid(&mut self, column: usize) -> Result<Jid> {
        Jid::parse(&self.text(column)?).map_or_else(|| Self::shape(column), Ok)
    }

    pub(crate) fn opt_jid(&mut self, column: usize) -> Result<Option<Jid>> {
        Ok(self.opt_text(column)?.as_deref().and_then(Jid::parse))
    }

    pub(crate) fn minion(&mut self, column: usize) -> Result<MinionId> {
        MinionId::new(&self.text(column)?).map_or_else(|_| Self::shape(column), Ok)
    }
}

/// Text that both databases can hold: PostgreSQL has no NUL, and what a minion sends may have one.
pub(crate) fn storable(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

impl Param {
    fn text(text: String) -> Self {
        Self::Text(storable(text))
    }
}

macro_rules! from {
    ($($ty:ty => |$v:ident| $make:expr;)*) => {
        $(impl From<$ty> for Param { fn from($v: $ty) -> Self { $make } })*
    };
}

from! {
    i64 => |v| Self::Int(v);
    i32 => |v| Self::Int(v.into());
    u32 => |v| Self::Int(v.into());
    usize => |v| Self::Int(i64::try_from(v).unwrap_or(i64::MAX));
    bool => |v| Self::Int(v.into());
    Timestamp => |v| Self::Int(v.micros());
    &str => |v| Self::text(v.to_owned());
    String => |v| Self::text(v);
    &String => |v| Self::text(v.clone());
    Vec<u8> => |v| Self::Blob(v);
    &Vec<u8> => |v| Self::Blob(v.clone());
    &[u8; 32] => |v| Self::Blob(v.to_vec());
    &Jid => |v| Self::Text(v.as_str().to_owned());
    Jid => |v| Self::Text(v.as_str().to_owned());
    &MinionId => |v| Self::Text(v.as_str().to_owned());
    saltern_core::ids::ActionId => |v| Self::Int(v.0);
    saltern_core::ids::ChainId => |v| Self::Int(v.0);
    saltern_core::ids::LaunchId => |v| Self::Int(v.0);
    saltern_core::ids::RecurringId => |v| Self::Int(v.0);
}

impl<T: Into<Self>> From<Option<T>> for Param {
    fn from(v: Option<T>) -> Self {
        v.map_or(Self::Null, Into::into)
    }
}

impl rusqlite::ToSql for Param {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        use rusqlite::types::{ToSqlOutput, ValueRef};
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(int) => ValueRef::Integer(*int),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(blob) => ValueRef::Blob(blob),
        }))
    }
}

impl ToSql for Param {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(int) => int.to_sql(ty, out),
            Self::Text(text) => text.to_sql(ty, out),
            Self::Blob(blob) => blob.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT8 | Type::TEXT | Type::BYTEA)
    }

    to_sql_checked!();
}
