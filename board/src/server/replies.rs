//! Reading fields out of replies: maps in RESP3, flat arrays in RESP2.

use redis::Value;

use super::{Result, Trouble};

/// The value of a field, as DQ says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    Nil,
    Number(u64),
    Bytes(Vec<u8>),
}

impl Field {
    pub fn number(&self) -> Option<u64> {
        match self {
            Field::Number(number) => Some(*number),
            Field::Nil | Field::Bytes(_) => None,
        }
    }

    pub fn bytes(self) -> Option<Vec<u8>> {
        match self {
            Field::Bytes(bytes) => Some(bytes),
            Field::Nil | Field::Number(_) => None,
        }
    }
}

/// The fields of a map in their order; `None` for a nil. Values that are no plain ones are left
/// out: a later DQ may say more than this board understands.
pub fn fields(reply: Value) -> Result<Option<Vec<(String, Field)>>> {
    if reply == Value::Nil {
        return Ok(None);
    }
    let pairs = reply.into_map_iter().map_err(|_| Trouble::Strange("no map"))?;
    Ok(Some(pairs.filter_map(|(name, value)| Some((name_of(name)?, field_of(value)?))).collect()))
}

fn name_of(name: Value) -> Option<String> {
    match field_of(name)? {
        Field::Bytes(name) => String::from_utf8(name).ok(),
        Field::Nil | Field::Number(_) => None,
    }
}

fn field_of(value: Value) -> Option<Field> {
    match value {
        Value::Nil => Some(Field::Nil),
        Value::Int(number) => Some(Field::Number(u64::try_from(number).unwrap_or(0))),
        Value::BulkString(bytes) => Some(Field::Bytes(bytes)),
        Value::SimpleString(text) => Some(Field::Bytes(text.into_bytes())),
        _ => None,
    }
}

pub fn bytes(value: Value) -> Result<Vec<u8>> {
    field_of(value).and_then(Field::bytes).ok_or(Trouble::Strange("no string"))
}

pub fn number(value: Value) -> Result<u64> {
    field_of(value).and_then(|field| field.number()).ok_or(Trouble::Strange("no number"))
}

/// A string or nil.
pub fn optional_bytes(value: Value) -> Result<Option<Vec<u8>>> {
    Ok(field_of(value).ok_or(Trouble::Strange("no string"))?.bytes())
}

/// A number or nil.
pub fn optional_number(value: Value) -> Result<Option<u64>> {
    Ok(field_of(value).ok_or(Trouble::Strange("no number"))?.number())
}

pub fn text(value: Value) -> Result<String> {
    String::from_utf8(bytes(value)?).map_err(|_| Trouble::Strange("no text"))
}

pub fn array(value: Value) -> Result<Vec<Value>> {
    value.into_sequence().map_err(|_| Trouble::Strange("no array"))
}

/// The reply to SCAN and DQ.SCAN: the next cursor and what was found.
pub fn scanned(value: Value) -> Result<(u64, Vec<Vec<u8>>)> {
    let (cursor, found) = scanned_values(value)?;
    Ok((cursor, found.into_iter().map(bytes).collect::<Result<_>>()?))
}

/// The same, where what was found is more than names.
pub fn scanned_values(value: Value) -> Result<(u64, Vec<Value>)> {
    let [cursor, found] =
        <[Value; 2]>::try_from(array(value)?).map_err(|_| Trouble::Strange("no cursor"))?;
    let cursor = String::from_utf8(bytes(cursor)?).ok().and_then(|cursor| cursor.parse().ok());
    Ok((cursor.ok_or(Trouble::Strange("no cursor"))?, array(found)?))
}
