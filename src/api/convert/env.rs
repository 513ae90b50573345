//! `spec.env` as a map and as a list. Values are carried as they are: whether
//! they may be so is for the schema to say.

use serde_json::{Map, Value};

use super::{ConvertError, order, shortened, wrong_type};

/// Turns the list into a map, and returns its order where that is not the one of names.
pub(super) fn list_to_map(spec: &mut Map<String, Value>) -> Result<Option<String>, ConvertError> {
    let entries = match spec.get_mut("env") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(entries)) => std::mem::take(entries),
        Some(_) => return Err(wrong_type("spec.env", "a list of names and values")),
    };
    let mut map = Map::new();
    let mut names = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let Value::Object(mut entry) = entry else {
            return Err(wrong_type(format!("spec.env[{index}]"), "an object"));
        };
        let Some(Value::String(name)) = entry.remove("name") else {
            return Err(wrong_type(format!("spec.env[{index}].name"), "a string"));
        };
        let value = entry.remove("value").unwrap_or_else(|| "".into());
        if map.insert(name.clone(), value).is_some() {
            let field = format!("spec.env[{index}].name");
            return Err(ConvertError::Duplicate { field, name: shortened(&name) });
        }
        names.push(name);
    }
    spec.insert("env".to_owned(), map.into());
    Ok(order::remember(&names))
}

/// Turns the map into a list, in the order that is remembered, else by name.
pub(super) fn map_to_list(
    spec: &mut Map<String, Value>,
    remembered: Option<&str>,
) -> Result<(), ConvertError> {
    let map = match spec.get_mut("env") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(map)) => std::mem::take(map),
        Some(_) => return Err(wrong_type("spec.env", "a map of names to values")),
    };
    let mut entries: Vec<(String, Value)> = map.into_iter().collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    let positions = remembered.and_then(|text| {
        let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
        order::positions(text, &names)
    });
    let list = match positions {
        None => entries.into_iter().map(entry).collect(),
        Some(positions) => {
            let mut list = vec![Value::Null; entries.len()];
            for (position, named) in positions.into_iter().zip(entries) {
                list[position] = entry(named);
            }
            list
        }
    };
    spec.insert("env".to_owned(), Value::Array(list));
    Ok(())
}

fn entry((name, value): (String, Value)) -> Value {
    Map::from_iter([("name".to_owned(), name.into()), ("value".to_owned(), value)]).into()
}
