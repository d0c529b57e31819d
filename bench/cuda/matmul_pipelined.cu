// kernels/matmul_pipelined.tilus (Figure 14, i6 weights) written by hand in CUDA C++, for comparison:
// bench/compile_time.py times nvcc on it beside tilus-llc, and
//
//     nvcc -arch=sm_90a -DWITH_MAIN -o matmul matmul_pipelined.cu
//     ./matmul M N K a.bin packed.bin c.bin
//
// multiplies files as `tilus-run --out` writes them, so that both can be compared. Nothing of the
// compiler or the runtime depends on this file. The same tiles, the same layouts, swizzles and copies:
// three stages of cp.async, ldmatrix.x4, mma.m16n8k16, C staged in shared memory.
#include <cstdint>
#include <cuda_fp16.h>

namespace {

constexpr int BM = 16, BN = 32, BK = 256, STAGES = 3, STEPS = 4, KS = BK / STEPS, BITS = 6;
constexpr int STEP_WORDS = KS * BN * BITS / 32, WORDS = STEPS * STEP_WORDS, THREADS = 128;
constexpr int LANE_WORDS = STEP_WORDS / THREADS, LANE_VALUES = KS * BN / THREADS;

struct Shared {
    __half a[STAGES][BM * BK];
    uint32_t b[STAGES][WORDS];
    __half c[BM * BN];
};

__device__ uint32_t shared_address(const void *p)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Copies 16 bytes, or writes zeros.
__device__ void copy_async(void *to, const void *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(shared_address(to)), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

__device__ void copy_async_commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int Pending> __device__ void copy_async_wait_group()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(Pending) : "memory");
}

// Runs of 8 halves, moved by the row modulo 8.
__device__ int swizzle_a(int row, int column)
{
    int element = row * BK + column;
    return element ^ (element >> 5 & 7 << 3);
}

// Runs of 8 halves, moved by half the row modulo 4.
__device__ int swizzle_c(int row, int column)
{
    int element = row * BN + column;
    return element ^ (element >> 3 & 3 << 3);
}

__device__ void copy_tiles(Shared &s, int stage, int step, const __half *a, const uint32_t *b, int m,
                           int n, int k)
{
    int thread = threadIdx.x;
    for (int chunk = thread; chunk < BM * BK / 8; chunk += THREADS) {
        int row = chunk / (BK / 8), column = chunk % (BK / 8) * 8;
        int64_t i = int64_t(blockIdx.x) * BM + row, j = int64_t(step) * BK + column;
        bool inside = i < m && j < k;
        copy_async(&s.a[stage][swizzle_a(row, column)], inside ? a + i * k + j : a, inside);
    }
    bool inside = step < (k + BK - 1) / BK;
    const uint32_t *tile = b + (int64_t(step) * ((n + BN - 1) / BN) + blockIdx.y) * WORDS;
    for (int chunk = thread; chunk < WORDS / 4; chunk += THREADS)
        copy_async(&s.b[stage][chunk * 4], inside ? tile + chunk * 4 : b, inside);
    copy_async_commit_group();
}

__device__ void load_matrices(uint32_t (&a)[4], const __half *tile, int column)
{
    int lane = threadIdx.x % 32;
    uint32_t address = shared_address(tile + swizzle_a(lane % 16, column + lane / 16 * 8));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(address));
}

// The signed 6-bit values of a thread, packed in three words, as halves.
__device__ void decode(__half2 (&values)[LANE_VALUES / 2], const uint32_t (&words)[LANE_WORDS])
{
    __half one[LANE_VALUES];
#pragma unroll
    for (int i = 0; i < LANE_VALUES; i++) {
        int bit = i * BITS, word = bit / 32;
        uint32_t high = word + 1 < LANE_WORDS ? words[word + 1] : 0;
        uint32_t code = __funnelshift_r(words[word], high, bit % 32);
        one[i] = __int2half_rn(static_cast<int>(code << (32 - BITS)) >> (32 - BITS));
    }
#pragma unroll
    for (int i = 0; i < LANE_VALUES / 2; i++)
        values[i] = __halves2half2(one[2 * i], one[2 * i + 1]);
}

__device__ void multiply(float (&c)[4], const uint32_t (&a)[4], __half2 b0, __half2 b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),
                   "r"(reinterpret_cast<uint32_t &>(b0)), "r"(reinterpret_cast<uint32_t &>(b1)));
}

__device__ void multiply_tiles(float (&sum)[4], const Shared &s, int stage)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        uint32_t words[LANE_WORDS];
#pragma unroll
        for (int i = 0; i < LANE_WORDS; i++)
            words[i] = s.b[stage][step * STEP_WORDS + (warp * LANE_WORDS + i) * 32 + lane];
        __half2 b[LANE_VALUES / 2];
        decode(b, words);
#pragma unroll
        for (int part = 0; part < KS / 16; part++) {
            uint32_t a[4];
            load_matrices(a, s.a[stage], step * KS + part * 16);
            multiply(sum, a, b[2 * part], b[2 * part + 1]);
        }
    }
}

// C from fragments to rows of shared memory, and from there in runs of 4.
__device__ void store_tile(Shared &s, const float (&sum)[4], __half *c, int m, int n)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int half = 0; half < 2; half++) {
        int place = swizzle_c(half * 8 + lane / 4, warp * 8 + lane % 4 * 2);
        *reinterpret_cast<__half2 *>(&s.c[place]) =
            __floats2half2_rn(sum[2 * half], sum[2 * half + 1]);
    }
    __syncthreads();
    int row = threadIdx.x / 8, column = threadIdx.x % 8 * 4;
    int64_t i = int64_t(blockIdx.x) * BM + row, j = int64_t(blockIdx.y) * BN + column;
    if (i < m && j < n)
        *reinterpret_cast<uint2 *>(c + i * n + j) =
            *reinterpret_cast<const uint2 *>(&s.c[swizzle_c(row, column)]);
}

} // namespace

extern "C" __global__ void __launch_bounds__(THREADS)
matmul(const __half *__restrict__ a, const uint32_t *__restrict__ b, __half *__restrict__ c, int m,
       int n, int k)
{
    __shared__ alignas(16) Shared s;
    for (int step = 0; step < STAGES - 1; step++)
        copy_tiles(s, step, step, a, b, m, n, k);
    copy_async_wait_group<STAGES - 2>();
    __syncthreads();
    float sum[4] = {};
    int steps = (k + BK - 1) / BK;
    for (int step = 0; step < steps; step++) {
        multiply_tiles(sum, s, step % STAGES);
        copy_tiles(s, (step + STAGES - 1) % STAGES, step + STAGES - 1, a, b, m, n, k);
        copy_async_wait_group<STAGES - 2>();
        __syncthreads();
    }
    copy_async_wait_group<0>();
    store_tile(s, sum, c, m, n);
}

#ifdef WITH_MAIN
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

static void *device_copy(const char *path)
{
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    void *memory = nullptr;
    cudaMalloc(&memory, bytes.size());
    cudaMemcpy(memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
    return memory;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return std::fputs("usage: matmul M N K a.bin packed.bin c.bin\n", stderr), 2;
    int m = std::atoi(argv[1]), n = std::atoi(argv[2]), k = std::atoi(argv[3]);
    std::vector<__half> c(size_t(m) * n);
    void *result = nullptr;
    cudaMalloc(&result, c.size() * sizeof(__half));
    matmul<<<dim3((m + BM - 1) / BM, (n + BN - 1) / BN), THREADS>>>(
        static_cast<__half *>(device_copy(argv[4])),
        static_cast<uint32_t *>(device_copy(argv[5])), static_cast<__half *>(result), m, n, k);
    cudaError_t error = cudaMemcpy(c.data(), result, c.size() * sizeof(__half),
                                   cudaMemcpyDeviceToHost);
    if (error != cudaSuccess)
        return std::fprintf(stderr, "%s\n", cudaGetErrorString(error)), 1;
    std::ofstream(argv[6], std::ios::binary)
        .write(reinterpret_cast<const char *>(c.data()), c.size() * sizeof(__half));
    return 0;
}
#endif
