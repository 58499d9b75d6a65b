//! Options as keyword arguments: each becomes the text that [`forebay_settings`] reads.

use std::time::Duration;

use forebay::{Durability, Options};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDelta, PyDict, PyFloat, PyInt, PyString};

use crate::failure::{Failure, Outcome};

/// An option's name, and its value as text.
pub(crate) type Text = (String, String);

/// The options that are given; those that are `None` are not.
pub(crate) fn texts(options: Option<&Bound<'_, PyDict>>) -> Outcome<Vec<Text>> {
    let mut texts = Vec::new();
    for (name, value) in options.iter().flat_map(|options| options.iter()) {
        let name: String = name.extract()?;
        if value.is_none() {
            continue;
        }
        let text = text(&name, &value)?;
        texts.push((name, text));
    }
    Ok(texts)
}

fn text(name: &str, value: &Bound<'_, PyAny>) -> Outcome<String> {
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(truth.is_true().to_string());
    }
    if value.is_instance_of::<PyDelta>() {
        return Ok(format!("{}ms", duration(value)?.as_millis()));
    }
    let is_plain = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>();
    if !is_plain {
        let kind = value.get_type().name()?;
        return Err(Failure::type_error(format!(
            "option {name} is of type {kind}; give a text, a number, True, False or a timedelta"
        )));
    }
    Ok(value.str()?.to_string())
}

/// A number of bytes: a number, or a text such as `64M`.
pub(crate) fn size(name: &str, value: &Bound<'_, PyAny>) -> Outcome<u64> {
    let text = text(name, value)?;
    forebay_units::sizes::parse(&text)
        .map_err(|reason| Failure::invalid(format!("{name} is `{text}`: {reason}")))
}

/// A time: a `timedelta`, seconds, or a text such as `12h`.
pub(crate) fn duration(value: &Bound<'_, PyAny>) -> Outcome<Duration> {
    if let Ok(text) = value.extract::<String>() {
        return forebay_units::times::parse(&text).map_err(Failure::invalid);
    }
    let seconds: f64 = match value.is_instance_of::<PyDelta>() {
        true => value.call_method0("total_seconds")?.extract()?,
        false => value.extract()?,
    };
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Failure::invalid(format!("{seconds} seconds; give a time that is not negative")))
}

/// `memory`, `os` or `disk`; `usual` where nothing is said.
pub(crate) fn durability(text: Option<&str>, usual: Durability) -> Outcome<Durability> {
    let Some(text) = text else { return Ok(usual) };
    forebay_settings::durability(text)
        .map_err(|reason| Failure::invalid(format!("durability is `{text}`: {reason}")))
}

/// The options of a database, and the durability of writes that say none.
pub(crate) fn database_options(options: Option<&Bound<'_, PyDict>>) -> Outcome<(Options, Durability, u32)> {
    let (mut made, mut usual, mut attempts) = (Options::default(), None, None);
    for (name, text) in texts(options)? {
        made = forebay_settings::database(&name, &text)?(made);
        match &name[..] {
            "durability" => usual = Some(durability(Some(&text), Durability::Os)?),
            "log" if text == "false" => usual = usual.or(Some(Durability::Memory)),
            "transaction_attempts" => {
                attempts =
                    forebay_units::amounts::parse(&text).ok().and_then(|number| number.try_into().ok());
            }
            _ => {}
        }
    }
    Ok((made, usual.unwrap_or(Durability::Os), attempts.unwrap_or(1000)))
}
