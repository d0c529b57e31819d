// A server's side of the libraries in C++20, on a device that is only described: plans, quantizes
// and packs weights, and compiles and interprets a program.
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tilus/matmul.h>
#include <tilus/tilus.h>

namespace {

template <auto Free>
struct Deleter {
    template <typename T> void operator()(T *object) const { Free(object); }
};
template <typename T, auto Free> using Owned = std::unique_ptr<T, Deleter<Free>>;

using Runtime = Owned<tilus_rt, tilus_rt_close>;
using Matmul = Owned<tilus_matmul, tilus_matmul_close>;
using Plan = Owned<tilus_matmul_plan, tilus_matmul_plan_free>;
using Text = Owned<char, tilus_free>;
using Diag = Owned<tilus_diag, tilus_diag_free>;
using Module = Owned<tilus_module, tilus_module_free>;

void check(tilus_status status, const char *why)
{
    if (status != TILUS_OK)
        throw std::runtime_error(std::string(tilus_status_name(status)) + ": " + why);
}

Runtime open_device(const char *name)
{
    const tilus_rt_options options{.struct_size = sizeof options,
                                   .devices = tilus_find_device(name), .device_count = 1};
    char message[256];
    tilus_rt *rt;
    check(tilus_rt_open(&options, &rt, message, sizeof message), message);
    return Runtime(rt);
}

void plan_and_pack(tilus_rt *rt)
{
    constexpr int64_t n = 1024, k = 512;
    tilus_matmul *opened;
    check(tilus_matmul_open(rt, nullptr, &opened), tilus_rt_error());
    Matmul matmul(opened);
    const tilus_matmul_problem problem{.struct_size = sizeof problem, .weights = "u4", .n = n,
                                       .k = k, .group = 128, .zeros = TILUS_ZEROS_INTEGER};
    tilus_matmul_plan *made;
    check(tilus_matmul_plan_create(matmul.get(), &problem, 0, &made), tilus_rt_error());
    Plan plan(made);

    const tilus_quantization how{.struct_size = sizeof how, .values = "f32", .weights = "u4",
                                 .n = n, .k = k, .group = 128, .zeros = TILUS_ZEROS_INTEGER};
    char message[256];
    tilus_quantized out{.struct_size = sizeof out};
    check(tilus_quantized_sizes(&how, &out, message, sizeof message), message);
    std::vector<float> values(n * k, 0.25f);
    std::vector<unsigned char> codes(out.codes_size), scales(out.scales_size), zeros(out.zeros_size);
    out.codes = codes.data(), out.scales = scales.data(), out.zeros = zeros.data();
    check(tilus_quantize(&how, values.data(), values.size() * sizeof values[0], &out, message,
                         sizeof message), message);

    const tilus_matmul_weights weights{.struct_size = sizeof weights, .codes = codes.data(),
                                       .scales = scales.data(), .zeros = zeros.data()};
    std::vector<unsigned char> packed(tilus_matmul_packed_size(plan.get()));
    check(tilus_matmul_pack(plan.get(), &weights, packed.data()), tilus_rt_error());
    Text kernels(tilus_matmul_kernels(plan.get(), 1));
    std::printf("packed %zu bytes; kernel %.*s\n", packed.size(),
                static_cast<int>(std::strcspn(kernels.get(), "\t")), kernels.get());
}

void interpret(std::string_view text, std::span<float> data)
{
    Diag diag(tilus_diag_new());
    Module module(tilus_parse(diag.get(), "twice.tilus", text.data(), text.size(), 1, nullptr, 0));
    if (!module)
        throw std::runtime_error(Text(tilus_diag_format(diag.get())).get());
    const tilus_buffer buffer{data.data(), data.size_bytes()};
    const tilus_arg argument{.pointer = 0};
    check(tilus_interpret(module.get(), "twice", &argument, 1, &buffer, 1, nullptr), "interpreter");
    std::printf("twice: %g %g\n", static_cast<double>(data[0]), static_cast<double>(data[31]));
}

} // namespace

int main()
try {
    static_assert(TILUS_VERSION_AT_LEAST(0, 2, 0));
    Runtime rt = open_device("h200");
    plan_and_pack(rt.get());
    std::vector<float> data(32);
    for (size_t i = 0; i < data.size(); i++)
        data[i] = static_cast<float>(i);
    interpret("tilus 1\nprogram @twice<1>(%x: ptr<f32>) warps(1) {\n"
              "  %g = view_global %x : f32[32]\n  %a = load_global %g[0] : f32[32] @ spatial(32)\n"
              "  %b = add %a, %a\n  store_global %b, %g[0]\n}\n", data);
} catch (const std::exception &error) {
    std::printf("error: %s\n", error.what());
    return 1;
}
