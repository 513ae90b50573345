//! The Service in lean form. Its type, its cluster IP and the like belong to
//! whoever sets them: a Task says nothing of them.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Map, Metadata};

/// A Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceShape {
    /// Metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: ServiceSpec,
}

/// The part of a Service's spec that the operator owns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceSpec {
    /// Which Pods.
    pub selector: Map,
    /// Ports, by name.
    pub ports: Vec<ServicePort>,
}

/// A port of a Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Its name.
    pub name: String,
    /// Its number.
    pub port: i32,
    /// The port of the Pods, by name or number.
    pub target_port: PortReference,
    /// TCP, UDP or SCTP.
    pub protocol: String,
}

/// A port by its name or its number.
#[derive(Clone, Debug, PartialEq)]
pub enum PortReference {
    /// By number.
    Number(i64),
    /// By name.
    Name(String),
}

impl Default for PortReference {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl Serialize for PortReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Name(name) => serializer.serialize_str(name),
        }
    }
}

impl<'de> Deserialize<'de> for PortReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrName;

        impl Visitor<'_> for NumberOrName {
            type Value = PortReference;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number or the name of a port")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<PortReference, E> {
                Ok(PortReference::Number(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<PortReference, E> {
                i64::try_from(number).map(PortReference::Number).map_err(E::custom)
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<PortReference, E> {
                Ok(PortReference::Name(name.to_owned()))
            }
        }

        deserializer.deserialize_any(NumberOrName)
    }
}
