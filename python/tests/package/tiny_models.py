"""Small random models of transformers, and what they compute with matrices of a checkpoint."""
import pathlib
import re
import tempfile

import pytest
import tilusc.formats

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", "5.23")

MATRIX = re.compile(r"(_proj|\.w[123])\.weight$")
TOKENS = torch.tensor([[1, 5, 9, 2, 40, 33, 7]])


def save(folder, name, **more):
    """Saves a model of f16 with one layer, of which, if it has experts, a token takes 2 of 4."""
    torch.manual_seed(1)
    random_model(name, **more).half().save_pretrained(folder)
    return folder


def random_model(name, **more):
    config = getattr(transformers, name + "Config")(
        vocab_size=64, hidden_size=128, intermediate_size=128, moe_intermediate_size=128, num_hidden_layers=1,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, num_experts=4, num_local_experts=4,
        num_experts_per_tok=2, initializer_range=0.1, **more)
    return getattr(transformers, name + "ForCausalLM")(config)


def load(folder, **options):
    options.setdefault("dtype", torch.float16)
    return transformers.AutoModelForCausalLM.from_pretrained(folder, **options)


def logits(model, **options):
    with torch.inference_mode():
        return model(TOKENS.to(model.device), **options).logits.float().cpu()


def near(have, want, share=0.01):
    return torch.isfinite(have).all() and (have - want).norm() < share * want.norm()


def restored(floats, folder, matrices):
    """Returns the model of the folder `floats` in f32, with other matrices, which have their names in files."""
    from safetensors.torch import load_file, save_file
    tensors = {name: value.float() for name, value in load_file(floats / "model.safetensors").items()}
    assert {name for name in tensors if MATRIX.search(name)} == matrices.keys()
    save_file({**tensors, **{name: torch.from_numpy(value) for name, value in matrices.items()}},
              folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text((floats / "config.json").read_text())
    return load(folder, dtype=torch.float32)


def dense(floats, matrices):
    """The logits of such a model."""
    with tempfile.TemporaryDirectory() as folder:
        return logits(restored(floats, pathlib.Path(folder), matrices))


def of_checkpoint(folder):
    with tilusc.formats.open(str(folder)) as model:
        return {name: model.weight(name).dequantize() for name in model.names() if MATRIX.search(name)}
