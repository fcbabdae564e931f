//! quicgym's network in virtual time, real/embedding/quicgym/network.h.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::slice;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

const API_VERSION: i32 = 1;
const CAPSULE: &CStr = c"quicgym.network";
const WIRE_OVERHEAD: usize = 30;

pub const DELIVERED: u8 = 0;

/// The same layout as in the header, as `Interface` has it, too.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Outcome {
    pub id: u64,
    pub time: i64,
    pub path: u32,
    pub backward: u8,
    pub fate: u8,
    pub ecn: u8,
    reserved: u8,
}

#[repr(C)]
struct Interface {
    api_version: i32,
    path_count: u32,
    network: *mut c_void,
    send: unsafe extern "C" fn(*mut c_void, u64, i64, u32, c_int, u32, c_int) -> i64,
    advance: unsafe extern "C" fn(*mut c_void, i64, *mut *const Outcome) -> i64,
    next_event: unsafe extern "C" fn(*const c_void) -> i64,
    last_error: unsafe extern "C" fn(*const c_void) -> *const c_char,
}

/// Lives as long as the capsule.
pub struct Network<'capsule> {
    interface: *const Interface,
    capsule: PhantomData<&'capsule PyCapsule>,
}

// SAFETY: any thread may use it, one at a time, says the header.
unsafe impl Send for Network<'_> {}

impl<'capsule> Network<'capsule> {
    pub fn of(capsule: &'capsule Bound<'_, PyCapsule>) -> Result<Self, String> {
        let pointer = capsule.pointer_checked(Some(CAPSULE));
        let interface = pointer.map_err(|error| error.to_string())?.as_ptr().cast::<Interface>();
        // SAFETY: what a capsule of this name has, says the header.
        let version = unsafe { (*interface).api_version };
        if version != API_VERSION {
            return Err(format!(
                "quicgym has version {version} of the network interface, quicgym-noq needs {API_VERSION}; \
                 install both of the same version"
            ));
        }
        Ok(Self { interface, capsule: PhantomData })
    }

    fn interface(&self) -> &Interface {
        // SAFETY: the capsule lives.
        unsafe { &*self.interface }
    }

    pub fn path_count(&self) -> usize {
        self.interface().path_count as usize
    }

    fn last_error(&self) -> String {
        let interface = self.interface();
        // SAFETY: a text that is valid until the next error.
        let text = unsafe { CStr::from_ptr((interface.last_error)(interface.network)) };
        text.to_string_lossy().into_owned()
    }

    /// A UDP payload of `bytes` leaves a host.
    pub fn send(&self, id: u64, time: i64, path: u32, backward: bool, bytes: usize) -> Result<(), String> {
        let interface = self.interface();
        let wire_bytes = (bytes + WIRE_OVERHEAD) as u32;
        let network = interface.network;
        let late = unsafe { (interface.send)(network, id, time, path, backward.into(), wire_bytes, 0) };
        // One ns: on a link without any delay, in the event that is going on.
        match late {
            ..0 => Err(self.last_error()),
            0 | 1 => Ok(()),
            _ => Err(format!("a packet of path {path} came {late} ns too late to its queue")),
        }
    }

    /// Returns the packets whose fate is known by `end`; valid up to the next call.
    pub fn advance(&mut self, end: i64) -> Result<&[Outcome], String> {
        let interface = self.interface();
        let mut outcomes = ptr::null();
        let count = unsafe { (interface.advance)(interface.network, end, &raw mut outcomes) };
        match count {
            ..0 => Err(self.last_error()),
            0 => Ok(&[]),
            // SAFETY: so many are there, until the network is called again.
            _ => Ok(unsafe { slice::from_raw_parts(outcomes, count as usize) }),
        }
    }

    pub fn next_event(&self) -> i64 {
        let interface = self.interface();
        unsafe { (interface.next_event)(interface.network) }
    }
}
