"""Programs of the tests."""

# y = x * a.
SCALE = """tilus 1
program @scale<%n / 128>(%x: ptr<f32> {align = 16}, %y: ptr<f32> {align = 16}, %a: f32,
                         %n: i32 {divisible = 128}) warps(1) {
  %block = block_indices
  %gx = view_global %x : f32[%n]
  %gy = view_global %y : f32[%n]
  %v = load_global %gx[%block * 128] : f32[128] @ spatial(32).local(4)
  %w = mul %v, %a
  store_global %w, %gy[%block * 128]
}
"""

# Values of packed codes.
DECODE = """tilus 1
param W: type = u4, T: type = f16

program @decode<%n / 128>(%w: ptr<W> {align = 16}, %y: ptr<T> {align = 16}, %n: i32 {divisible = 128}) warps(1) {
  %block = block_indices
  %gw = view_global %w : W[%n]
  %gy = view_global %y : T[%n]
  %codes = load_global %gw[%block * 128] : W[128] @ spatial(32).local(4)
  %values = cast %codes : T
  store_global %values, %gy[%block * 128]
}

program @nothing<1>(%y: ptr<T>) warps(1) {
}
"""
