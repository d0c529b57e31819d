" Vim syntax file: Tilus program text (*.tilus)
" editors/update.py writes the names of ops and types.

if exists("b:current_syntax")
  finish
endif
let s:cpo_save = &cpo
set cpo&vim

syn keyword tilusTodo TODO FIXME XXX contained
syn match tilusComment "//.*$" contains=tilusTodo,@Spell

syn keyword tilusKeyword tilus param layout program warps min_blocks cooperative contract in iter step pipelined strides swizzle type
syn keyword tilusConditional when else
syn keyword tilusLayout local spatial column_local column_spatial replicate register_layout permute reshape slice concat
  \ left_divide
syn keyword tilusScalar and or not mod ceil_div bits
syn keyword tilusFact divisible range align
syn keyword tilusType ptr

" names:begin
syn keyword tilusOp
  \ block_indices cluster_rank scalar view_global allocate_global allocate_shared
  \ allocate_register iota splat random load_global store_global load_shared store_shared
  \ load_scalar copy_async copy_async_commit_group copy_async_wait_group
  \ allocate_mbarrier mbarrier_arrive mbarrier_wait copy_async_bulk copy_async_bulk_store
  \ copy_async_bulk_commit_group copy_async_bulk_wait_group atomic_add atomic_max
  \ atomic_min atomic_exch atomic_cas synchronize cluster_synchronize grid_synchronize
  \ grid_pace lock release launch_dependents wait_dependencies setmaxnreg view slice
  \ permute reshape convert_layout concat interleave cast decode rescale lookup
  \ lookup_shared dequantize add sub mul neg div mod abs min max fma exp2 exp log2 rcp
  \ rsqrt sqrt tanh floor ceil round sin cos erf compare select and or xor not shl shr
  \ dot dot_async dot_wait reduce scan broadcast shuffle assert assume exit print
syn keyword tilusControl
  \ for while if thread_group yield
syn keyword tilusType
  \ bool u1 u2 u3 u4 u5 u6 u7 u8 u16 u32 u64 i1 i2 i3 i4 i5 i6 i7 i8 i16 i32 i64 f3e1m1
  \ f3e2m0 f4e1m2 f4e2m1 f4e3m0 f5e1m3 f5e2m2 f5e3m1 f5e4m0 f6e1m4 f6e2m3 f6e3m2 f6e4m1
  \ f6e5m0 f7e1m5 f7e2m4 f7e3m3 f7e4m2 f7e5m1 f7e6m0 f8e1m6 f8e2m5 f8e3m4 f8e4m3 f8e5m2
  \ f8e6m1 f8e7m0 ue8m0 f16 bf16 tf32 f32 f64
" names:end

" min and max are scalar functions where a parenthesis follows.
syn match tilusScalar "\<\(min\|max\)\ze("
syn match tilusValue "%\w\+"
syn match tilusProgram "@\h\w*"
syn match tilusNumber "\<\d\+\(\.\d\+\)\?\([eE][-+]\?\d\+\)\?\>"
syn match tilusNumber "\<0[xX]\x\+\>"
syn keyword tilusNumber inf nan

hi def link tilusTodo Todo
hi def link tilusComment Comment
hi def link tilusKeyword Keyword
hi def link tilusConditional Conditional
hi def link tilusControl Repeat
hi def link tilusLayout Function
hi def link tilusScalar Operator
hi def link tilusFact PreProc
hi def link tilusOp Statement
hi def link tilusType Type
hi def link tilusValue Identifier
hi def link tilusProgram Function
hi def link tilusNumber Number

let b:current_syntax = "tilus"
let &cpo = s:cpo_save
unlet s:cpo_save
