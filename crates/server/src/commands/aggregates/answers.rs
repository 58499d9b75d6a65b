//! Keys and answers as replies.

use forebay::aggregate::Value;
use forebay_aggregate::group_key;

use super::groups::Groups;
use super::kinds::{Shown, shown};
use crate::resp::Reply;

fn truth(reply: &mut Reply, truth: bool) {
    match reply.version {
        3 => reply.bytes.extend_from_slice(if truth { b"#t\r\n" } else { b"#f\r\n" }),
        _ => reply.int(truth.into()),
    }
}

fn double(reply: &mut Reply, text: &[u8]) {
    if reply.version != 3 {
        return reply.bulk(text);
    }
    reply.bytes.push(b',');
    reply.bytes.extend_from_slice(if text == b"NaN" { b"nan" } else { text });
    reply.bytes.extend_from_slice(b"\r\n");
}

/// What a function answers. Numbers that are no integers of 64 bits and no floats stand as texts.
fn value(reply: &mut Reply, answer: &Value<'_>) {
    match answer {
        Value::Null => reply.null(),
        Value::Bool(one) => truth(reply, *one),
        Value::I64(number) => reply.int(*number),
        Value::F32(_) | Value::F64(_) => double(reply, &answer.to_text()),
        Value::I128(number) => match i64::try_from(*number) {
            Ok(number) => reply.int(number),
            Err(_) => reply.bulk(&answer.to_text()),
        },
        Value::List(items) => {
            reply.array(items.len());
            items.iter().for_each(|item| value(reply, item));
        }
        Value::Pairs(pairs) => {
            reply.map(pairs.len());
            for (key, item) in pairs {
                value(reply, key);
                value(reply, item);
            }
        }
        Value::Bytes(_) | Value::Decimal(_) | Value::Cut => reply.bulk(&answer.to_text()),
    }
}

impl Groups {
    /// The answers by their names.
    fn fields(&self, reply: &mut Reply, answers: &[Value<'_>]) {
        for (name, place) in &self.asked.names {
            reply.bulk(name.as_bytes());
            value(reply, &answers[*place]);
        }
    }

    /// What a group answers, or nothing where there is none.
    pub(super) fn answer(&self, reply: &mut Reply, answers: Option<&[Value<'_>]>) {
        let Some(answers) = answers else { return reply.null() };
        reply.map(self.asked.names.len());
        self.fields(reply, answers);
    }

    /// The same with the columns of its key before it.
    pub(super) fn row(&self, reply: &mut Reply, key: &[u8], answers: &[Value<'_>]) {
        let columns = self.schema.keys();
        reply.map(columns.len() + self.asked.names.len());
        let mut values = group_key::split(key);
        for column in columns {
            reply.bulk(column.name().as_bytes());
            let text = values.next().and_then(group_key::column);
            match text.map(|text| shown(&text, column.data_type())) {
                None => reply.null(),
                Some(Shown::Int(number)) => reply.int(number),
                Some(Shown::Bool(one)) => truth(reply, one),
                Some(Shown::Float(text)) => double(reply, text.as_bytes()),
                Some(Shown::Bytes(bytes)) => reply.bulk(&bytes),
            }
        }
        self.fields(reply, answers);
    }
}
