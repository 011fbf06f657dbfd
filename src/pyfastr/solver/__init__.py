"""The algorithm: arrays and models, nothing of scikit-learn, files or plots."""
