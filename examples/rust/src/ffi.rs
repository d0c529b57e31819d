//! Declarations as in tilus/runtime.h and tilus/matmul.h; docs/api has the same in words.
//!
//! Structs say their size first, so they may end where the fields that are needed do: what the
//! library does not get is 0.
#![allow(non_camel_case_types)]
use std::ffi::{c_char, c_int, c_void};

pub enum tilus_rt {}
pub enum tilus_matmul {}
pub enum tilus_matmul_plan {}
pub enum tilus_device_description {}
pub type tilus_status = c_int;
pub type tilus_stream = *mut c_void;

#[repr(C)]
pub struct tilus_rt_options {
    pub struct_size: usize,
    pub library: *const c_char,
    pub log: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>,
    pub log_data: *mut c_void,
    pub devices: *const tilus_device_description,
    pub device_count: usize,
}

#[repr(C)]
pub struct tilus_matmul_options {
    pub struct_size: usize,
    pub kernels: *const c_void,
    pub kernel_count: usize,
    pub directory: *const c_char,
}

#[repr(C)]
pub struct tilus_matmul_problem {
    pub struct_size: usize,
    pub weights: *const c_char,
    pub activations: *const c_char,
    pub scales: *const c_char,
    pub result: *const c_char,
    pub n: i64,
    pub k: i64,
    pub group: i64,
}

#[repr(C)]
pub struct tilus_matmul_weights {
    pub struct_size: usize,
    pub codes: *const c_void,
    pub scales: *const c_void,
    pub zeros: *const c_void,
    pub transposed: bool,
}

#[repr(C)]
pub struct tilus_matmul_call {
    pub struct_size: usize,
    pub m: i64,
    pub a: u64,
    pub a_stride: i64,
    pub weights: u64,
    pub bias: u64,
    pub residual: u64,
    pub c: u64,
    pub workspace: u64,
    pub workspace_size: usize,
    pub weights_identity: u64,
}

extern "C" {
    pub fn tilus_rt_error() -> *const c_char;
    pub fn tilus_free(memory: *mut c_void);
    pub fn tilus_type_bits(name: *const c_char) -> u32;
    pub fn tilus_find_device(name: *const c_char) -> *const tilus_device_description;
    pub fn tilus_rt_open(
        options: *const tilus_rt_options,
        out: *mut *mut tilus_rt,
        message: *mut c_char,
        size: usize,
    ) -> tilus_status;
    pub fn tilus_rt_close(rt: *mut tilus_rt);
    pub fn tilus_rt_device_name(rt: *const tilus_rt, device: c_int) -> *const c_char;

    pub fn tilus_matmul_open(
        rt: *mut tilus_rt,
        options: *const tilus_matmul_options,
        out: *mut *mut tilus_matmul,
    ) -> tilus_status;
    pub fn tilus_matmul_close(matmul: *mut tilus_matmul);
    pub fn tilus_matmul_plan_create(
        matmul: *mut tilus_matmul,
        problem: *const tilus_matmul_problem,
        device: c_int,
        out: *mut *mut tilus_matmul_plan,
    ) -> tilus_status;
    pub fn tilus_matmul_plan_free(plan: *mut tilus_matmul_plan);
    pub fn tilus_matmul_prepare(plan: *mut tilus_matmul_plan, m: i64) -> tilus_status;
    pub fn tilus_matmul_kernels(plan: *const tilus_matmul_plan, m: i64) -> *mut c_char;
    pub fn tilus_matmul_packed_size(plan: *const tilus_matmul_plan) -> usize;
    pub fn tilus_matmul_packed_identity(plan: *const tilus_matmul_plan) -> u64;
    pub fn tilus_matmul_workspace_size(plan: *const tilus_matmul_plan, m: i64) -> usize;
    pub fn tilus_matmul_pack(
        plan: *const tilus_matmul_plan,
        weights: *const tilus_matmul_weights,
        packed: *mut c_void,
    ) -> tilus_status;
    pub fn tilus_matmul_run(
        plan: *mut tilus_matmul_plan,
        stream: tilus_stream,
        call: *const tilus_matmul_call,
    ) -> tilus_status;
}
