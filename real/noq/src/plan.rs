//! What one run is to do, as quicgym.real.stacks has it: times are ns from the scenario's beginning,
//! sizes bytes of UDP payload.

use pyo3::prelude::*;

pub const NEVER: i64 = i64::MAX;

pub type Parameters = Vec<(String, Vec<f64>)>;

/// The controller or policy of a flow's sender.
#[derive(Clone)]
pub enum Steering {
    Catalogue { name: String, parameters: Parameters },
    User { specification: usize, parameters: Parameters },
    Policy { path: String },
    Own { name: String },
}

#[derive(Clone)]
pub struct Flow {
    pub steering: Steering,
    pub seed: u64,
    pub start: i64,
    pub stop: i64,
    pub size_bytes: Option<u64>,
    pub max_datagram_bytes: u16,
    pub flow_control_window_bytes: u64,
    pub ack_eliciting_threshold: u64,
    pub max_ack_delay: i64,
}

/// The settings that all flows share.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub duration: i64,
    pub interval: i64, // between two rows
}

impl<'py> FromPyObject<'_, 'py> for Steering {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let kind: String = object.getattr("kind")?.extract()?;
        let name: String = object.getattr("name")?.extract()?;
        let mut parameters = Vec::new();
        for item in object.getattr("parameters")?.call_method0("items")?.try_iter()? {
            parameters.push(item?.extract()?);
        }
        match kind.as_str() {
            "controller" => Ok(Self::Catalogue { name, parameters }),
            "user" => {
                let hosted = object.py().import("quicgym.real.hosted_controller")?;
                let specification = hosted.call_method1("specification_of", (object,))?.extract()?;
                Ok(Self::User { specification, parameters })
            }
            "policy" => Ok(Self::Policy { path: object.getattr("policy")?.str()?.extract()? }),
            _ => Ok(Self::Own { name }),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Flow {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self {
            steering: object.getattr("steering")?.extract()?,
            seed: object.getattr("seed")?.extract()?,
            start: object.getattr("start")?.extract()?,
            stop: object.getattr("stop")?.extract()?,
            size_bytes: object.getattr("size_bytes")?.extract()?,
            max_datagram_bytes: object.getattr("max_datagram_bytes")?.extract()?,
            flow_control_window_bytes: object.getattr("flow_control_window_bytes")?.extract()?,
            ack_eliciting_threshold: object.getattr("ack_eliciting_threshold")?.extract()?,
            max_ack_delay: object.getattr("max_ack_delay")?.extract()?,
        })
    }
}
