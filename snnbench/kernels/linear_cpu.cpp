/* The layer of linear_cpu.c as a function of PyTorch's autograd. It owns the memory of a pass and calls C once each
   way.

   Python can do the same, and takes longer than the work of a small layer (`benchmarks limit`). Operators, of which
   linear_cpu.py makes the arguments `plan` and `inference`, the plan of a pass without gradients:

     snnbench::linear_cpu           the layer with its gradients, where a tensor needs them
     snnbench::linear_cpu_forward   a forward pass, for an autograd of another kind; also returns what it kept
     snnbench::linear_cpu_backward  its backward pass, with the gradients of `wanted`: input, weight, bias, parameters
     snnbench::linear_cpu_memory    whether the memory of large arrays is used again; idle memory is given back */
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

extern "C" {
#include "linear_cpu.h"
}

namespace {

using at::IntArrayRef;
using at::ScalarType;
using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/* Memory of large arrays that later passes use again, as in buffers.py, which says why. */
class Pool {
 public:
  static constexpr int64_t SMALLEST_BYTES = 1 << 16; /* smaller arrays are left to torch */

  Tensor empty(IntArrayRef shape, ScalarType type) {
    const int64_t bytes = c10::multiply_integers(shape) * (int64_t)c10::elementSize(type);
    if (!reuses || bytes < SMALLEST_BYTES) return at::detail::empty_cpu(shape, type);
    auto tensor = at::detail::make_tensor<c10::TensorImpl>(
        storage(bytes), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(type));
    tensor.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
    return tensor;
  }

  void reuse(bool whether) {
    std::lock_guard<std::mutex> lock(mutex);
    reuses = whether;
    drop_idle();
  }

 private:
  c10::Storage storage(int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    for (const auto &each : storages[bytes])
      if (each.use_count() == 1) return each;
    drop_idle();
    storages[bytes].emplace_back(c10::Storage::use_byte_size_t(), bytes, c10::GetCPUAllocator(), false);
    return storages[bytes].back();
  }

  void drop_idle() {
    for (auto kind = storages.begin(); kind != storages.end();) {
      auto &all = kind->second;
      all.erase(std::remove_if(all.begin(), all.end(), [](const auto &each) { return each.use_count() == 1; }),
                all.end());
      kind = all.empty() ? storages.erase(kind) : std::next(kind);
    }
  }

  std::atomic<bool> reuses{false};
  std::mutex mutex;
  std::map<int64_t, std::vector<c10::Storage>> storages; /* by their bytes */
};

/* It outlives the tensors of a process that ends. */
Pool &pool() {
  static Pool *const the_pool = new Pool;
  return *the_pool;
}

/* The layer of one pass, as C reads it: contiguous, in the format of the inputs. */
struct Layer {
  Tensor inputs, weight, bias, potential;
  plan_t plan;

  Layer(const Tensor &inputs, const Tensor &weight, const Tensor &bias, const Tensor &potential, const plan_t &plan)
      : inputs(inputs.contiguous()), weight(weight.contiguous()), bias(as_inputs(bias)),
        potential(as_inputs(potential)), plan(plan) {}

  Tensor as_inputs(const Tensor &tensor) const {
    if (!tensor.defined()) return tensor;
    return (tensor.scalar_type() == type() ? tensor : tensor.to(type())).contiguous();
  }
  ScalarType type() const { return inputs.scalar_type(); }
  Tensor empty(IntArrayRef shape) const { return pool().empty(shape, type()); }
};

void *address(const Tensor &tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

plan_t plan_in(const Tensor &bytes, double beta, double threshold) {
  plan_t copy = *static_cast<const plan_t *>(bytes.const_data_ptr());
  copy.sizes.beta = beta;
  copy.sizes.threshold = threshold;
  return copy;
}

/* Spikes [T, B, N], the potential after the last step [B, N], and what is kept for the backward pass, or undefined. */
std::tuple<Tensor, Tensor, Tensor> passed_forward(const Layer &layer) {
  const auto &[steps, batch, entering, neurons, length, threads, sparse, beta, threshold, slope] = layer.plan.sizes;
  const bool whole = layer.plan.keep == KEEP_DISTANCES, states = layer.plan.keep == KEEP_STATES;
  const bool in_place = whole && !layer.plan.is_half;
  Tensor kept, scratch;
  if (whole) kept = pool().empty({steps, batch, neurons}, layer.plan.is_half ? at::kBFloat16 : layer.type());
  if (states) kept = layer.empty({(steps + length - 1) / length, batch, neurons});
  if (!in_place) scratch = layer.empty({length, batch, neurons});
  auto spikes = layer.empty({steps, batch, neurons});
  auto last = layer.empty({batch, neurons});
  const forward_pass_t pass = {layer.plan.sizes,
                               address(layer.inputs),
                               address(layer.weight),
                               address(layer.bias),
                               address(layer.potential),
                               address(last),
                               address(spikes),
                               whole ? address(kept) : nullptr,
                               states ? address(kept) : nullptr,
                               address(scratch)};
  layer.plan.forward(&pass);
  return {spikes, last, kept};
}

struct Wanted {
  bool input, weight, bias, parameters;
};

/* dL/d of each, undefined where it is not wanted; beta and threshold are single numbers. */
struct Gradients {
  Tensor potential, input, weight, bias, beta, threshold;
};

/* Gradients for `cotangent` [T, B, N] of the spikes and `carried` [B, N] of the last potential, zeros if undefined. */
Gradients passed_backward(const Layer &layer, Tensor cotangent, const Tensor &carried, const Tensor &kept,
                          Wanted wanted) {
  const auto &[steps, batch, entering, neurons, length, threads, sparse, beta, threshold, slope] = layer.plan.sizes;
  const bool again = layer.plan.keep == KEEP_STATES;
  TORCH_CHECK(layer.plan.keep != KEEP_NONE, "nothing was kept for a backward pass: the argument keep was empty");
  cotangent = cotangent.defined() ? cotangent.contiguous() : at::zeros({steps, batch, neurons}, layer.type());
  const auto last = layer.as_inputs(carried);
  const auto gradient = layer.empty({length, batch, neurons});
  Gradients gradients;
  gradients.potential = layer.empty({batch, neurons});
  if (wanted.input) gradients.input = layer.empty({steps, batch, entering});
  if (wanted.weight) gradients.weight = layer.empty({neurons, entering});
  if (wanted.bias) gradients.bias = layer.empty({neurons});
  if (wanted.parameters) gradients.beta = layer.empty({neurons});
  if (wanted.parameters) gradients.threshold = layer.empty({neurons});
  const backward_pass_t pass = {layer.plan.sizes,
                                address(layer.inputs),
                                address(layer.weight),
                                address(layer.bias),
                                address(layer.potential),
                                address(cotangent),
                                again ? nullptr : address(kept),
                                again ? address(kept) : nullptr,
                                address(last),
                                again ? address(gradient) : nullptr,
                                address(gradients.potential),
                                address(gradient),
                                address(gradients.input),
                                address(gradients.weight),
                                address(gradients.bias),
                                address(gradients.beta),
                                address(gradients.threshold)};
  layer.plan.backward(&pass);
  if (wanted.parameters) {
    gradients.beta = gradients.beta.sum();
    gradients.threshold = gradients.threshold.sum();
  }
  return gradients;
}

using Optional = const std::optional<Tensor> &;

Tensor or_undefined(Optional tensor) { return tensor.value_or(Tensor()); }

std::tuple<Tensor, Tensor, Tensor> linear_cpu_forward(const Tensor &inputs, const Tensor &weight, Optional bias,
                                                      Optional potential, double beta, double threshold,
                                                      const Tensor &plan) {
  const Layer layer(inputs, weight, or_undefined(bias), or_undefined(potential), plan_in(plan, beta, threshold));
  auto results = passed_forward(layer);
  auto &kept = std::get<2>(results);
  if (!kept.defined()) kept = layer.empty({0});
  return results;
}

/* `gradient` in the format and shape of `source`. */
Tensor like(const Tensor &gradient, const Tensor &source) {
  if (gradient.scalar_type() == source.scalar_type() && gradient.sizes() == source.sizes()) return gradient;
  return gradient.to(source.scalar_type()).reshape(source.sizes());
}

/* A gradient that refuses to be differentiated again, by any of the `sources` that it depends on. */
struct Once : torch::autograd::Function<Once> {
  template <typename... Sources>
  static Tensor forward(AutogradContext *, const Tensor &gradient, const Sources &...) {
    return gradient.view_as(gradient);
  }

  static variable_list backward(AutogradContext *, const variable_list &) {
    TORCH_CHECK(false, "lif has first derivatives only: its gradient cannot be differentiated");
  }
};

/* The layer with its gradients. */
struct LinearLif : torch::autograd::Function<LinearLif> {
  enum Source { INPUTS, WEIGHT, BIAS, POTENTIAL, BETA, THRESHOLD, SOURCES, KEPT = SOURCES };

  static variable_list forward(AutogradContext *ctx, const Tensor &inputs, const Tensor &weight, Optional bias,
                               Optional potential, Optional learned_beta, Optional learned_threshold, double beta,
                               double threshold, const Tensor &plan) {
    const auto [spikes, last, kept] = passed_forward(
        {inputs, weight, or_undefined(bias), or_undefined(potential), plan_in(plan, beta, threshold)});
    ctx->save_for_backward({inputs, weight, or_undefined(bias), or_undefined(potential), or_undefined(learned_beta),
                            or_undefined(learned_threshold), kept});
    ctx->saved_data["settings"] = std::make_tuple(beta, threshold, plan);
    ctx->set_materialize_grads(false);
    return {spikes, last};
  }

  static variable_list backward(AutogradContext *ctx, const variable_list &cotangents) {
    const auto sources = ctx->get_saved_variables();
    auto gradients = [&] {
      at::AutoDispatchBelowADInplaceOrView below_autograd;
      return differentiated(ctx, sources, cotangents);
    }();
    if (at::GradMode::is_enabled()) { /* by create_graph=True */
      const auto source = [](const Tensor &each) { return each.defined() ? std::make_optional(each) : std::nullopt; };
      for (auto &gradient : gradients)
        if (gradient.defined())
          gradient = Once::apply(gradient, source(sources[INPUTS]), source(sources[WEIGHT]), source(sources[BIAS]),
                                 source(sources[POTENTIAL]), source(sources[BETA]), source(sources[THRESHOLD]),
                                 source(cotangents[0]), source(cotangents[1]));
    }
    return gradients;
  }

  static variable_list differentiated(AutogradContext *ctx, const variable_list &sources,
                                      const variable_list &cotangents) {
    const auto needs = [&](Source source) { /* autograd numbers the tensors that are there */
      const auto edge = std::count_if(&sources[0], &sources[source], [](const auto &each) { return each.defined(); });
      return sources[source].defined() && ctx->needs_input_grad(edge);
    };
    const Wanted wanted = {needs(INPUTS), needs(WEIGHT), needs(BIAS), needs(BETA) || needs(THRESHOLD)};
    const auto [beta, threshold, plan] = ctx->saved_data["settings"].to<std::tuple<double, double, Tensor>>();
    const Layer layer(sources[INPUTS], sources[WEIGHT], sources[BIAS], sources[POTENTIAL],
                      plan_in(plan, beta, threshold));
    const auto by = passed_backward(layer, cotangents[0], cotangents[1], sources[KEPT], wanted);
    return {by.input,
            by.weight,
            wanted.bias ? like(by.bias, sources[BIAS]) : Tensor(),
            needs(POTENTIAL) ? like(by.potential, sources[POTENTIAL]) : Tensor(),
            needs(BETA) ? like(by.beta, sources[BETA]) : Tensor(),
            needs(THRESHOLD) ? like(by.threshold, sources[THRESHOLD]) : Tensor(),
            Tensor(),
            Tensor(),
            Tensor()};
  }
};

/* Whether autograd must see a function of this tensor. */
bool is_differentiated(const Tensor &tensor) {
  return tensor.defined() && ((at::GradMode::is_enabled() && tensor.requires_grad()) || tensor._fw_grad(0).defined());
}

bool is_differentiated(Optional tensor) { return tensor && is_differentiated(*tensor); }

std::tuple<Tensor, Tensor> linear_cpu(const Tensor &inputs, const Tensor &weight, Optional bias, Optional potential,
                                      Optional learned_beta, Optional learned_threshold, double beta, double threshold,
                                      const Tensor &plan, const Tensor &inference) {
  if (!is_differentiated(inputs) && !is_differentiated(weight) && !is_differentiated(bias) &&
      !is_differentiated(potential) && !is_differentiated(learned_beta) && !is_differentiated(learned_threshold)) {
    const auto [spikes, last, kept] = passed_forward(
        {inputs, weight, or_undefined(bias), or_undefined(potential), plan_in(inference, beta, threshold)});
    return {spikes, last};
  }
  const auto outputs =
      LinearLif::apply(inputs, weight, bias, potential, learned_beta, learned_threshold, beta, threshold, plan);
  return {outputs[0], outputs[1]};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> linear_cpu_backward(
    const Tensor &inputs, const Tensor &weight, Optional bias, Optional potential, const Tensor &cotangent,
    Optional carried, const Tensor &kept, const c10::List<bool> &wanted, double beta, double threshold,
    const Tensor &plan) {
  const Layer layer(inputs, weight, or_undefined(bias), or_undefined(potential), plan_in(plan, beta, threshold));
  const auto by = passed_backward(layer, cotangent, or_undefined(carried), kept,
                                  {wanted[0], wanted[1], wanted[2], wanted[3]});
  return {by.potential, by.input, by.weight, by.bias, by.beta, by.threshold};
}

void linear_cpu_memory(bool reuse) { pool().reuse(reuse); }

}  // namespace

#define LAYER "Tensor inputs, Tensor weight, Tensor? bias, Tensor? potential"
#define SETTINGS "float beta, float threshold, Tensor plan"

TORCH_LIBRARY_FRAGMENT(snnbench, library) {
  library.def("linear_cpu(" LAYER ", Tensor? learned_beta, Tensor? learned_threshold, " SETTINGS
              ", Tensor inference) -> (Tensor, Tensor)",
              linear_cpu);
  library.def("linear_cpu_forward(" LAYER ", " SETTINGS ") -> (Tensor, Tensor, Tensor)", linear_cpu_forward);
  library.def("linear_cpu_backward(" LAYER
              ", Tensor cotangent, Tensor? carried, Tensor kept, bool[] wanted, " SETTINGS
              ") -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
              linear_cpu_backward);
  library.def("linear_cpu_memory(bool reuse) -> ()", linear_cpu_memory);
}
